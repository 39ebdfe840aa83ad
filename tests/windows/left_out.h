/* SPDX-License-Identifier: Apache-2.0 */
/* The cases of unit tests that are left out on Windows, each with its reason. Cases that call what
 * Windows lacks (posix.h) leave themselves out; whole programs are in tests/CMakeLists.txt. */
#ifndef EMBLA_TESTS_WINDOWS_LEFT_OUT_H
#define EMBLA_TESTS_WINDOWS_LEFT_OUT_H

#define MAPPED "Windows does not cut a file that is mapped"
#define LINK   "Windows makes symbolic links for administrators only"
#define MODE   "Windows has no mode of a file"
#define OPEN   "wine replaces no file that is open"
#define EVENT  "Windows has no event that is a file"
#define TIMES  "Windows counts times of files in 100 nanoseconds, and the test changes one"
#define TICKS  "under wine the processor time of a process counts in 10 milliseconds"
#define TELLS  "Windows does not tell what its cache has, and how large pages are"
#define X87    "the C library's sine is off for large angles, and ours is held against it"

static const struct {
    const char *name, *reason;
} left_out[] = {
    /* test_elementary */
    {"sines_are_near_those_of_the_c_library", X87},
    {"angles_of_any_size_have_a_sine", X87},
    /* test_parallel */
    {"quotas_of_control_groups_are_rounded_up", "Windows has no control groups"},
    /* test_io */
    {"rule_c11_a_file_cut_short_is_noticed_one_grown_is_not", MAPPED},
    {"rule_c5_no_piece_takes_more_memory_than_the_file_has_bytes", MAPPED},
    /* test_museum_gguf */
    {"row_22_llama_cpp_6774_truncated_while_open", MAPPED},
    /* test_checkpoint */
    {"a_shard_that_a_download_cache_links_to_its_blob_is_read", LINK},
    {"a_file_that_everyone_may_write_to_is_copied", MODE},
    /* test_open */
    {"a_file_in_a_folder_that_cannot_be_listed_opens", MODE},
    {"rule_s13_a_blob_is_called_by_40_to_64_digits", LINK},
    {"the_last_two_colons_name_the_tensor", "a name of Windows has no colon"},
    /* test_parallel: a fork inside a loop */
    {"a_child_forked_inside_a_loop_does_not_hang", "Windows has no fork"},
    /* test_tickets */
    {"a_flag_and_an_eventfd_tell_that_a_ticket_has_ended", EVENT},
    {"every_allocation_of_opening_may_fail", EVENT},
    /* test_reload, test_convert */
    {"a_file_that_is_replaced_is_noticed_and_reloaded", OPEN},
    {"a_file_that_exists_is_replaced_only_if_asked", OPEN},
    /* test_store */
    {"huge_pages_are_counted_by_the_system", TELLS},
    {"filling_leaves_no_second_copy_in_the_page_cache", TELLS},
    /* test_store_files */
    {"a_file_that_is_changed_while_it_is_read_is_a_status", TIMES},
    {"a_file_that_is_changed_or_grows_is_a_status", TIMES},
    {"a_file_that_is_replaced_keeps_its_rows_and_verify_says_so", OPEN},
    /* test_growth */
    {"a_longer_prompt_takes_no_square", TICKS},
    {"more_tensors_take_no_square", TICKS},
    {"more_words_take_no_square", TICKS},
    /* test_sharded: 137 GB, of which little is used */
    {"test_giant", "Windows charges memory when it is asked for, not when it is used"},
    /* test_tokenizer_cost */
    {"work_is_bounded_by_the_text", "libonig is not there"},
};

#endif
