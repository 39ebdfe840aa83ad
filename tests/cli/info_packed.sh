# SPDX-License-Identifier: Apache-2.0
# Compressed vectors are decompressed to a temporary file, which is gone afterwards.
export TMPDIR=$PWD/temporary
mkdir "$TMPDIR"
cp "$SOURCE/demo/words.vec" words.vec
gzip -k words.vec
embla near words.vec.gz cat --top 1
if command -v xz >/dev/null; then xz -k words.vec && embla near words.vec.xz cat --top 1; else
    embla near words.vec cat --top 1
fi
embla info words.vec.gz | grep format
embla convert words.vec.gz out.npy -q | grep -c verified
ls "$TMPDIR" | wc -l

# what goes wrong
head -c 5000 words.vec.gz >cut.gz
embla near cut.gz cat 2>messages || echo "exit $?"
grep -c 'cut.gz was not decompressed: gzip ended with exit code 1' messages
echo hello | gzip >text.gz
embla info text.gz 2>messages || echo "exit $?"
said=$(PATH=$(dirname "$(command -v embla)") embla info words.vec.gz 2>&1)
# under qemu a program that cannot be started ends with exit code 127 instead
[[ -z ${EMBLA_TEST_EMULATED-} ]] || said=${said/gzip ended with exit code 127/gzip, which decompresses it, cannot be started}
grep -o 'gzip, which decompresses it, cannot be started' <<<"$said"
TMPDIR=$PWD/nowhere embla info words.vec.gz 2>&1 | grep -o "cannot create a folder for the decompressed file"
ls "$TMPDIR" | wc -l
