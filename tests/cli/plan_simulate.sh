# SPDX-License-Identifier: Apache-2.0
# Drawn row numbers: the owners of 64 ranks are almost equally busy.
embla plan --rows 128256 --dim 64 --tokens 8192 --simulate | sed -n '/^Model/,$p'
