# SPDX-License-Identifier: Apache-2.0
# Lines that cannot be right.
. "$SOURCE/tests/cli/models.sh"
make_model giant g
try verify
try verify missing
try verify g --sample 0
try verify g --sample 5 --all
try verify g --place disk
try verify g --name mine
try verify g --place ram --folder /dev/shm
try verify g --seed -1
