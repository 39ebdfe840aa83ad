# SPDX-License-Identifier: Apache-2.0
# Communities of a small table are groups of similar words, and their names have the colours of the communities.
cp "$SOURCE/demo/words.vec" .
king=$(($(grep -n '^king ' words.vec | cut -d: -f1) - 2))
embla map words.vec -o words.svg --color community --words king,queen --json |
    grep -o '"central":[^]]*]' | grep "[[,]$king[],]" | grep -o '[0-9]*' | while read -r row; do
    sed -n "$((row + 2))s/ .*//p" words.vec
done | sort | xargs
grep -o 'class="word halo[^>]*>[^<]*\(king\|queen\|saturday\)[^<]*' words.svg | sort
grep -o '\.c15{fill:[^}]*}' words.svg
