# SPDX-License-Identifier: Apache-2.0
# Who waits for another's copy can be sent away, and leaves nothing.
. "$SOURCE/tests/cli/models.sh"
command -v flock >/dev/null || { echo "skipped: there is no flock"; exit 77; }
make_model giant g
mkdir shm
lock=shm/mine.$(id -u).lock
exec 9>$lock
flock 9
embla warm g --shared --folder shm --name mine >out 2>err 9>&- &
warm=$!
# until it catches SIGTERM (bit 14 of a mask): before that, the signal would just end it
while kill -0 $warm && ! ((0x$(sed -n 's/^SigCgt:\t//p' /proc/$warm/status) & 0x4000)); do
    sleep 0.01
done
[[ -z ${EMBLA_TEST_EMULATED-} ]] || sleep 5 # qemu itself catches all signals, from the beginning
kill -0 $warm && echo waiting
kill -TERM $warm
wait $warm
echo "exit $?"
cat out err
[ "$(ls -A shm)" = "${lock#shm/}" ] && echo 'the lock is still there'
# who waits no longer than a second is told who holds the lock: this shell opened it, flock locked it
embla warm g --shared --folder shm --name mine --wait 1 2>&1 9>&- |
    sed -E "s/process [0-9]+ of user $(id -u)|another process/SOMEBODY/; s/\.$(id -u)\./.UID./"
exec 9>&-
embla warm g --shared --folder shm --name mine | grep -c built
ls -A shm
