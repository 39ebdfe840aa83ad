# SPDX-License-Identifier: Apache-2.0
# docs/embla.1 is what the program prints, and renders without a warning.
embla help --man >embla.1
cmp embla.1 "$SOURCE/docs/embla.1" && echo "the same"
if command -v groff >/dev/null; then
    groff -man -Tutf8 -ww embla.1 2>&1 >/dev/null
fi
