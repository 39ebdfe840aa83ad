/* SPDX-License-Identifier: Apache-2.0 */
#include <cstdio>
#include <embla.hpp>

int main()
{
    embla::table table(EMBLA_F32, 3, 2);
    table.write(2, std::vector<float>{5, 6});
    const std::vector<float> row = embla::lookup(table, std::vector<std::int32_t>{2});
    std::printf("embla %s, row 2: %g %g\n", embla::version(), static_cast<double>(row[0]),
                static_cast<double>(row[1]));
    return row[0] == 5 ? 0 : 1;
}
