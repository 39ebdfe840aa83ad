# SPDX-License-Identifier: Apache-2.0
# The program's defaults for OpenMP and OpenBLAS, and that what a user has set wins.
cp "$SOURCE/examples/quick-brown-fox.vec" fox.vec
unset OMP_WAIT_POLICY GOMP_SPINCOUNT KMP_BLOCKTIME KMP_LIBRARY OPENBLAS_CORETYPE

# How often a thread looks for work before it sleeps: libgomp says so at each start.
spins() {
    env OMP_DISPLAY_ENV=verbose "$@" embla --version 2>&1 >/dev/null |
        sed -n "s/.*GOMP_SPINCOUNT = '\([0-9]*\)'.*/\1/p"
}
if [[ -z $(spins OMP_WAIT_POLICY=passive) ]]; then
    echo "skipped: this program does not use libgomp, which alone says how its threads wait"
    exit 77
fi
echo "nothing is set: $(spins | tail -1) after $(spins | wc -l) starts"
echo "OMP_NUM_THREADS: $(spins OMP_NUM_THREADS=1 | tail -1)"
echo "OMP_WAIT_POLICY=passive:" $(spins OMP_WAIT_POLICY=passive)
echo "GOMP_SPINCOUNT=777:" $(spins GOMP_SPINCOUNT=777)
[[ $(spins OMP_WAIT_POLICY=active) -gt 1000000 ]] && echo "OMP_WAIT_POLICY=active: it spins"

# The second start keeps operands, standard input and the exit code.
printf 'fox\n' | embla lookup fox.vec - --plain --dim 1 | cut -f 1,2
try lookup fox.vec 'no such word'

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
