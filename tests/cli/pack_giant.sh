# SPDX-License-Identifier: Apache-2.0
# A giant table is packed, used in place of its source, and compared with it again.
. "$SOURCE/tests/cli/models.sh"
make_model giant g
steady() {
    sed -E -e 's/p50 [0-9.]+ ms, p99 [0-9.]+ ms/p50 T ms, p99 T ms/' -e 's/blocked for [0-9.]+/blocked for T/' \
        -e 's/(io_uring|pread|buffered), up to [0-9]+ reads/READER, up to N reads/' \
        -e 's/grew by .*/grew by N/' -e 's/cache_growth":[0-9]+/cache_growth":N/'
}
try trace g 1 2 3 1 2 3 1 2 -o t.npy -q
try pack g plain.safetensors
try pack g p.safetensors --frequent 3 --trace t.npy --json
try pack g p.safetensors
try rows g 1 2 --values 2 >a
try rows p.safetensors 1 2 --values 2 >b
diff a b | grep -v '^[<>] \$' | grep '^[<>]' && echo "the rows differ"
try trace p.safetensors --replay t.npy | steady
try pack --verify g p.safetensors
try pack --verify p.safetensors
try pack g q.safetensors --bundles p.safetensors --json
try verify p.safetensors
# the bytes are those of the source, not of its folder
try pack "$PWD/g/" moved.safetensors -q >/dev/null
cmp plain.safetensors moved.safetensors && echo "the same bytes" && rm moved.safetensors
# the source changes; the pack is damaged
printf 'other' | dd of=g/model.safetensors bs=1 seek=100000 conv=notrunc 2>/dev/null
try pack --verify g p.safetensors
try pack g p.safetensors --force -q
try pack --verify g p.safetensors -q
printf 'other' | dd of=p.safetensors bs=1 seek=100000 conv=notrunc 2>/dev/null
try pack --verify p.safetensors
# a constant of the hasher is changed: nothing opens it, whatever the source
try pack g p.safetensors --force -q
change() {
    at=$(LC_ALL=C grep -abo "$2" "$1" | head -n 1 | cut -d: -f1)
    printf '%s' "$3" | dd of="$1" bs=1 seek="$at" conv=notrunc 2>/dev/null
}
change p.safetensors 'offsets\\":\[0' 'offsets\":[1'
try pack --verify g p.safetensors
try pack --verify p.safetensors
try rows p.safetensors 1 2
try info p.safetensors
# a pack of a pack has the same hasher
try pack g plain.safetensors --force -q
try pack plain.safetensors r.safetensors -q
try pack --verify g r.safetensors
try rows g 1 2 --values 2 -q >a
# version 1 had no checksum of its manifest: it opens with a note, and the source decides
change plain.safetensors ',"embla.pack.checksum":"[0-9a-f]*"' "$(printf '%57s' '')"
change plain.safetensors 'version\\":2' 'version\":1'
try rows plain.safetensors 1 2 --values 2 -q >c
diff a c | grep -v '^[<>] \$' | grep '^[<>]' && echo "the rows differ"
try pack --verify plain.safetensors
try pack --verify g plain.safetensors
change plain.safetensors 'offsets\\":\[0' 'offsets\":[1'
try pack --verify g plain.safetensors
# what is refused
try pack --verify g
try pack g
try pack g -
try pack g x --frequent 3
try pack g x --text t.npy --frequent 2
try pack g x --bundles t.npy
try pack g x --trace g/config.json --frequent 2
try pack g/config.json x
ls
try pack g plain.safetensors
try pack g nowhere/x
