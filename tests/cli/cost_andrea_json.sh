# SPDX-License-Identifier: Apache-2.0
# 2Vd + Td + 12Ld^2 = 98,698,752 parameters, in stable keys and plain integers.
embla cost andrea-120m --json
embla cost andrea-12m --json
