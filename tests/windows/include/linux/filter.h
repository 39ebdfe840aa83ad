/* SPDX-License-Identifier: Apache-2.0 */
/* Filters of calls, for tests that forbid calls in a child, which are skipped on Windows. */
#ifndef EMBLA_TESTS_WINDOWS_FILTER_H
#define EMBLA_TESTS_WINDOWS_FILTER_H

struct sock_filter {
    unsigned short code;
    unsigned char jt, jf;
    unsigned k;
};
struct sock_fprog {
    unsigned short len;
    struct sock_filter *filter;
};
enum { BPF_LD, BPF_W, BPF_ABS, BPF_JMP, BPF_JEQ, BPF_K, BPF_RET };
#define BPF_STMT(code, k)                                                                          \
    {                                                                                              \
        (unsigned short)(code), 0, 0, (k)                                                          \
    }
#define BPF_JUMP(code, k, jt, jf)                                                                  \
    {                                                                                              \
        (unsigned short)(code), (jt), (jf), (k)                                                    \
    }

#endif
