# SPDX-License-Identifier: Apache-2.0
# The program's defaults for OpenBLAS, and that what a user has set wins.
cp "$SOURCE/demo/fox.vec" fox.vec
unset OPENBLAS_CORETYPE

# OpenBLAS says which kernels it runs. Another BLAS says nothing.
core() {
    env OPENBLAS_VERBOSE=2 "$@" embla spectrum fox.vec 2>&1 >/dev/null | sed -n 's/^Core: //p'
}
set_core=$(core OPENBLAS_CORETYPE=Prescott) own_core=$(core)
[[ -z $set_core || $set_core == Prescott ]] || echo "set: Prescott, used: $set_core"
if grep -q '^flags.* avx512dq' /proc/cpuinfo && [[ $own_core == Prescott ]]; then
    echo "OpenBLAS uses the kernels of a Prescott on a CPU with AVX-512"
fi
exit 0
