/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of embla.hpp are written with. A test is a function without arguments; main.cpp
 * calls all of them. */
#ifndef EXPECT_HPP
#define EXPECT_HPP

#include <cstdio>
#include <cstdlib>
#include <embla.hpp>
#include <string>

#define EXPECT(condition) expect((condition), #condition, __FILE__, __LINE__)

inline int failures = 0;

inline void expect(bool holds, const char *what, const char *file, int line)
{
    if (holds) return;
    std::fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, what);
    failures++;
}

/* The status and the sentence of the error that a function throws; EMBLA_OK if it throws none. */
struct thrown {
    embla_status status = EMBLA_OK;
    std::string sentence;

    template <class F> explicit thrown(F function)
    {
        try {
            function();
        } catch (const embla::error &e) {
            status = e.status();
            sentence = e.what();
        }
    }
};

extern std::string demo;   /* the folder of the demo */
extern std::string folder; /* a folder for files of the tests */

void test_rows();
void test_checkpoints();
void test_stores();
void test_texts();

#endif
