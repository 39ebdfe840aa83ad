# SPDX-License-Identifier: Apache-2.0
# The script parses.
command -v zsh >/dev/null || { echo "skipped: there is no zsh"; exit 77; }
embla completion zsh >_embla && zsh -n _embla && echo parses
