/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of embla.hpp. Each part is a file that includes it, so that a function that is not inline
 * would be defined twice.
 *   usage: test_cpp DEMO     the folder of the demo */
#include <filesystem>

#include "expect.hpp"

std::string demo, folder;

int main(int argc, char **argv)
{
    if (argc != 2) return std::fprintf(stderr, "usage: test_cpp DEMO\n"), 2;
    std::string made = (std::filesystem::temp_directory_path() / "embla-cpp-XXXXXX").string();
    demo = argv[1];
    if (mkdtemp(made.data()) == nullptr) return std::perror(made.c_str()), 2;
    folder = made;
    try {
        test_rows();
        test_checkpoints();
        test_stores();
        test_texts();
    } catch (const std::exception &e) {
        std::fprintf(stderr, "thrown: %s\n", e.what());
        std::filesystem::remove_all(folder);
        return 1;
    }
    std::filesystem::remove_all(folder);
    if (failures > 0) return 1;
    std::printf("embla.hpp with C++ of %ld: all tests passed\n", static_cast<long>(__cplusplus));
    return 0;
}
