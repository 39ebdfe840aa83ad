# SPDX-License-Identifier: Apache-2.0
# Lines that cannot be right, and tables that are not there.
. "$SOURCE/tests/cli/models.sh"
make_model giant g
mkdir shm
try warm
try warm g g
try warm missing
try warm g --name mine
try warm g --folder shm
try warm g --layer x
try warm g --layer 5000000000
try warm g --shared --folder nowhere
try warm g --shared --folder shm --name a/b
try warm g --shared --folder shm --name ''
echo 'not a copy' >shm/mine
try warm g --shared --folder shm --name mine
try warm g --remove --folder shm --name mine
cat shm/mine
make_model plain.safetensors wte.weight:F32:5x4 wpe.weight:F32:8x4
try warm plain.safetensors
try warm plain.safetensors::nothing
try warm 'g::model.ple.ple_embedding.ngram_embedding.part_*.weight'
ls -A shm
