# SPDX-License-Identifier: Apache-2.0
# One copy for all processes: built, found, checked, removed.
. "$SOURCE/tests/cli/models.sh"
# times differ, the name of a copy, and what the system has of huge pages
plain() {
    sed -E 's/in [0-9.]+ s, [0-9.]+ GB/in T s, R GB/; s/\([0-9.]+ s\)/(T s)/; s/embla-[0-9a-f]{16}/embla-ID/;
        s/^(huge pages +).*/\1H/; s/"huge_bytes":-?[0-9]+/"huge_bytes":H/;
        s/"(seconds|bytes_per_second)":[0-9.e+-]+/"\1":T/g'
}
make_model giant g
mkdir shm
try warm g --shared --folder shm | plain
ls -A shm | plain
ls -l shm | grep -o '^-r--r--r--'
try warm g --shared --folder shm | plain
try verify g --place shared --folder shm --all | plain
try warm g --shared --folder shm --json | plain
try warm g --remove --folder shm | plain
ls -A shm
try warm g --remove --folder shm | plain
try warm g --shared --folder shm --name mine --json | plain
ls -A shm
# eight at once: one builds, the others wait for it
try warm g --remove --folder shm --name mine --json
for i in {1..8}; do embla warm g --shared --folder shm --name mine --json & done >all
wait
grep -o '"built":[a-z]*' all | sort | uniq -c | sed 's/^ *//'
ls -A shm
# a byte that is not what it was
chmod u+w shm/mine
printf '\xff' | dd of=shm/mine bs=1 seek=$((2097152 + 17 * 160 + 3)) conv=notrunc status=none
try warm g --shared --folder shm --name mine
try verify g --place shared --folder shm --name mine --all
try verify g --place shared --folder shm --name mine --all --json | plain
# the model is another by now
touch -d 2001-01-01 g/model.safetensors
try warm g --shared --folder shm --name mine
rm shm/mine
try warm g --shared --folder shm --name mine | plain
# of one who was killed
rm -f shm/mine
echo half >shm/.mine.$(id -u).tmp.0123456789abcdef
: >shm/mine.$(id -u).lock
try warm g --shared --folder shm --name mine --quiet | plain
ls -A shm
