# SPDX-License-Identifier: Apache-2.0
# A table that needs hosts: too few, enough, and so many that messages take longer than bytes.
embla plan --rows 10G --dim 128 --hosts 8 | head -n 3
echo
embla plan --rows 10G --dim 128 --network 200Gbit/s
echo
embla plan --rows 1e10 --dim 128 --hosts 1024 --ranks-per-host 2 --tokens 8k | head -n 16
echo
embla plan --rows 1e12 --dim 128 --memory 1GB | head -n 2
