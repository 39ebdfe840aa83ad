# SPDX-License-Identifier: Apache-2.0
# The keys are stable; what they hold depends on the machine.
mask() { sed -E 's/[0-9]+\.[0-9]+\.[0-9]+.*$/VERSION/; s/(kernels|build) .*/\1 .../; s/"(version|kernels|build)":"[^"]+"/"\1":"..."/g'; }
embla --version | mask
embla --version --json | sed -E 's/"(version|kernels|build|engine)":"[^"]+"/"\1":"..."/g; s/("kernel_sets":\["scalar")[^]]*/\1.../'
embla -V | head -1 | mask
version=$(sed -n -E 's/^#define EMBLA_VERSION_(MAJOR|MINOR|PATCH) ([0-9]+)$/\2/p' "$SOURCE/include/embla.h" | paste -sd.)
[[ $(embla --version | head -1) == "embla $version" ]] && echo "the header's version"
EMBLA_ISA=scalar embla --version | grep kernels
