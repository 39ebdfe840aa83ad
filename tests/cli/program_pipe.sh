# SPDX-License-Identifier: Apache-2.0
# A reader that leaves early ends the program without a word, also where the parent
# ignores SIGPIPE.
embla help | head -n 1 | sed 's/ [0-9.]* / VERSION /'
(
    trap '' PIPE
    embla cost --list | true
)
echo done
