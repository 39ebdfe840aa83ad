# SPDX-License-Identifier: Apache-2.0
# Shared copies that nobody needs any more.
. "$SOURCE/tests/cli/models.sh"
plain() { sed -E 's/embla-[0-9a-f]{16}/embla-ID/'; }
make_model giant g
mkdir shm
try warm --sweep --folder shm
embla warm g --shared --folder shm --quiet >all
embla warm g --shared --folder shm --name mine --quiet >all
try warm --sweep --folder shm
# the file has changed: both are dead, and a killed builder has left something
touch -d 2001-01-01 g/model.safetensors
echo half >shm/.embla-0123456789abcdef.$(id -u).tmp.0123456789abcdef
echo other >shm/other
try warm --sweep --folder shm
ls -A shm
# building a copy removes the dead one, but none that has been named
embla warm g --shared --folder shm --quiet >all
embla warm g --shared --folder shm --name mine --quiet >all
touch -d 2002-02-02 g/model.safetensors
embla warm g --shared --folder shm --quiet >all
ls -A shm | plain
try warm --sweep --folder shm --json
try warm --sweep --unused --folder shm --json
ls -A shm
# lines that cannot be right
try warm
try warm --sweep g
try warm --unused
try warm g --unused
try warm --sweep --shared
try warm --sweep --name mine
try warm --sweep --folder nowhere
