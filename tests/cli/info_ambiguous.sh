# SPDX-License-Identifier: Apache-2.0
# Several tensors could be the table: they are listed, and one can be named.
. "$SOURCE/tests/cli/models.sh"
make_model two.safetensors other.weight:F32:4x4 model.wte.weight:F32:4x4 transformer.wte.weight:F32:8x4
try info two.safetensors
try info two.safetensors --json
try info two.safetensors::transformer.wte.weight
try info two.safetensors::wte
make_model none.safetensors a.weight:F32:4x4 b.weight:F32:8x4
try info none.safetensors
make_model only.safetensors a.weight:F32:4x4
try info only.safetensors
