# SPDX-License-Identifier: Apache-2.0
# --measure replaces the assumed speeds of memory; one process has no network to measure.
embla plan --rows 100k --dim 64 --tokens 1024 --measure >plan.out
grep -c 'memory measured, network assumed' plan.out
tail -n 1 plan.out
embla plan --rows 100k --dim 64 --tokens 1024 --measure --json |
    sed -E 's/.*"measured":false,.*"machine":\{"measured":true,"measured_with":null,.*/a model with measured speeds/'
