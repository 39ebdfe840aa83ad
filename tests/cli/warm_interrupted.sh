# SPDX-License-Identifier: Apache-2.0
# Who waits for another's copy can be sent away, and leaves nothing.
. "$SOURCE/tests/cli/models.sh"
command -v flock >/dev/null || { echo "skipped: there is no flock"; exit 77; }
make_model giant g
mkdir shm
exec 9>shm/mine.lock
flock 9
embla warm g --shared --folder shm --name mine >out 2>err 9>&- &
warm=$!
sleep 0.3
kill -0 $warm && echo waiting
kill -TERM $warm
wait $warm
echo "exit $?"
cat out err
ls -A shm
exec 9>&-
embla warm g --shared --folder shm --name mine | grep -c built
ls -A shm
