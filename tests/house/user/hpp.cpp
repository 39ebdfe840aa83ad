/* SPDX-License-Identifier: Apache-2.0 */
/* A program outside the tree, with embla.hpp. It needs libembla alone. */
#include <cstdio>
#include <embla.hpp>

int main()
try {
    const std::vector<float> values = {1, 2, 3, 4, 5, 6};
    embla::table_layout layout;
    layout.dtype = EMBLA_F32;
    layout.rows = 3;
    layout.dim = 2;
    const embla::table table = embla::table::view(layout, values);
    const std::vector<float> row = embla::lookup(table, std::vector<std::int32_t>{2});
    std::printf("row 2: %g %g\n", static_cast<double>(row[0]), static_cast<double>(row[1]));
    return 0;
} catch (const embla::error &e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
}
