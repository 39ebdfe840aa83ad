# SPDX-License-Identifier: Apache-2.0
# The program's defaults for OpenBLAS, and that what a user has set wins.
cp "$SOURCE/demo/fox.vec" fox.vec
unset OPENBLAS_CORETYPE

# OpenBLAS says which kernels it runs. Another BLAS says nothing.
core() {
    env OPENBLAS_VERBOSE=2 "$@" embla spectrum fox.vec 2>&1 >/dev/null | sed -n 's/^Core: //p'
}
other=Prescott # kernels that every x86-64 or 64-bit Arm CPU can run
[[ $(embla --version) != *neon* ]] || other=CORTEXA57
set_core=$(core OPENBLAS_CORETYPE=$other) own_core=$(core)
[[ -z $set_core || ${set_core,,} == "${other,,}" ]] || echo "set: $other, used: $set_core"
if grep -q '^flags.* avx512dq' /proc/cpuinfo && [[ $own_core == Prescott ]]; then
    echo "OpenBLAS uses the kernels of a Prescott on a CPU with AVX-512"
fi
exit 0
