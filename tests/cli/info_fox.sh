# SPDX-License-Identifier: Apache-2.0
# Word vectors: no head, words from the file itself.
. "$SOURCE/tests/cli/models.sh"
fox
try info fox.vec
try info fox.vec --json
try info fox.vec --all --json
