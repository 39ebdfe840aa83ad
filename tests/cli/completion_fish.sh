# SPDX-License-Identifier: Apache-2.0
# The script parses.
command -v fish >/dev/null || { echo "skipped: there is no fish"; exit 77; }
embla completion fish >embla.fish && fish --no-execute embla.fish && echo parses
