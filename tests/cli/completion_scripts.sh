# SPDX-License-Identifier: Apache-2.0
# zsh and fish: what the tables give.
embla completion zsh
embla completion fish
