# SPDX-License-Identifier: Apache-2.0
# One preset as text: the parts, their shares, and the work for one token.
embla cost gpt2
