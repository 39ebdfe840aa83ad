# SPDX-License-Identifier: Apache-2.0
# Functions of the tests under mpirun. Source it with the name of the MPI as $1: openmpi or mpich.
mpi=$1
launcher=mpirun.$mpi
folder=$(mktemp -d "${TMPDIR:-/tmp}/embla-mpi-XXXXXX")
trap 'rm -rf "$folder"' EXIT

skip() {
    echo "skipped: $*"
    exit 77
}

command -v "$launcher" >/dev/null || skip "$launcher is not installed"
[ -e "$EMBLA_MPI_FOLDER/libembla_mpi_$mpi.so" ] || skip "libembla_mpi_$mpi.so was not built"
export EMBLA_MPI_LIBRARY=$EMBLA_MPI_FOLDER/libembla_mpi_$mpi.so

# A long campaign tries every number of ranks with 1 and 2 threads, and all cases with both MPIs.
# Otherwise each number of ranks has one number of threads, and MPICH the first case.
long() { [ -n "${EMBLA_MPI_STEPS:-}${EMBLA_MPI_TRAIN_STEPS:-}" ]; }
chosen() { long || [ $((($1 + $2) % 2)) = 1 ]; } # RANKS THREADS
every_case() { long || [ "$mpi" = openmpi ]; }

ranks() { # NUMBER COMMAND..: run it on so many ranks
    local number=$1
    shift
    if [ "$mpi" = openmpi ]; then
        # more ranks than cores; a container may run as root, and forbid reading other processes
        OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
            "$launcher" --oversubscribe --mca btl_vader_single_copy_mechanism none -n "$number" "$@"
    else
        "$launcher" -n "$number" "$@"
    fi
}
