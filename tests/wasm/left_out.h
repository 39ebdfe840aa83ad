/* SPDX-License-Identifier: Apache-2.0 */
/* The cases of unit tests that are left out in WebAssembly, each with its reason. Cases that call
 * what WASI lacks (posix.h) leave themselves out; whole programs are in tests/CMakeLists.txt. */
#ifndef EMBLA_TESTS_WASM_LEFT_OUT_H
#define EMBLA_TESTS_WASM_LEFT_OUT_H

#define SMALL   "it needs sizes of 64 bits"
#define MAPPED  "it maps more than a WebAssembly program has memory, or sees changes of a map"
#define LOCKS   "WASI has no locks of files, so nothing is shared"
#define DIRECT  "WASI does not read past the page cache"
#define THREADS "WebAssembly starts no thread"
#define MODE    "WASI has no mode of a file"
#define TIMES   "node sets times of files in whole seconds"
#define ABOVE   "WASI opens no name above an open folder"
#define NUMBERS "the C library has other sentences for errors of the system"
#define CALLS   "it replaces calls of the C library by their numbers"

static const struct {
    const char *name, *reason;
} left_out[] = {
    /* test_checked */
    {"a_span_ends_with_the_last_thing_not_with_its_stride", SMALL},
    /* test_mem */
    {"no_memory_for_a_giant_table_is_a_status", SMALL},
    /* test_elementary: musl computes its long doubles of 128 bits as doubles */
    {"exponentials_are_near_those_of_the_c_library",
     "the C library has no function that is nearer"},
    {"logarithms_are_near_those_of_the_c_library", "the C library has no function that is nearer"},
    /* test_lock */
    {"one_thread_at_a_time_has_a_lock", THREADS},
    {"no_signal_of_a_condition_is_lost", THREADS},
    {"what_is_done_once_is_done_before_anyone_goes_on", THREADS},
    {"the_start_of_a_thread_can_fail", THREADS},
    {"the_load_of_a_library_can_fail", "WebAssembly loads no libraries"},
    /* test_io */
    {"every_call_fails_with_the_error_it_was_told_and_names_its_file", NUMBERS},
    {"a_failed_close_gives_its_descriptor_back", "it asks for the number of the next open file"},
    {"an_interrupted_call_is_taken_up_again", CALLS},
    {"what_is_locked_is_not_swept", LOCKS},
    {"places_of_the_guard_are_used_again", "no page of a copy can be lost, so nothing is guarded"},
    /* test_durable */
    {"a_file_gets_its_name_only_when_it_is_complete", MODE},
    {"whatever_fails_leaves_the_old_file_or_the_new_one", "fewer calls, so fewer can fail"},
    {"the_mode_is_that_of_any_new_file", MODE},
    {"a_new_file_replaces_nothing", CALLS},
    /* test_gguf */
    {"rule_g2_a_million_and_one_are_refused", MAPPED},
    {"rule_g3_a_value_has_at_most_64_mib", MAPPED},
    {"rule_g4_an_array_has_at_most_2_to_28_elements", MAPPED},
    {"rule_g4_all_arrays_have_at_most_2_to_24_strings_and_bools", MAPPED},
    /* test_checkpoint, test_open, test_roles, test_encoder */
    {"a_shard_that_a_download_cache_links_to_its_blob_is_read", ABOVE},
    {"rule_s13_a_blob_is_called_by_40_to_64_digits", ABOVE},
    {"variants_with_a_config_share_the_words_above_them", ABOVE},
    {"every_layout_is_found", ABOVE},
    {"a_file_in_a_folder_that_cannot_be_listed_opens", MODE},
    /* test_table */
    {"no_product_of_a_giant_table_is_cut_to_32_bits", SMALL},
    {"init_fills_rows_far_apart", SMALL},
    {"row_numbers_go_past_2_to_the_31", SMALL},
    /* test_extents */
    {"numbers_that_cannot_be_are_refused", SMALL},
    {"all_rows_together_are_counted", SMALL},
    /* test_store */
    {"every_placement_returns_what_was_written", DIRECT},
    {"rows_that_straddle_pages_are_among_them", DIRECT},
    {"parts_of_rows_are_returned_by_every_placement", DIRECT},
    {"every_call_of_a_store_may_fail", DIRECT},
    {"every_allocation_of_a_store_may_fail", DIRECT},
    {"short_reads_are_taken_up_again", CALLS},
    {"huge_pages_are_counted_by_the_system", "WebAssembly has no huge pages"},
    {"verify_finds_rows_that_differ", TIMES},
    {"a_sample_is_even_and_no_row_is_in_it_twice", TIMES},
    /* test_store_files */
    {"a_file_that_is_changed_while_it_is_read_is_a_status", TIMES},
    {"a_file_that_is_changed_or_grows_is_a_status", TIMES},
    /* test_tickets */
    {"a_flag_and_an_eventfd_tell_that_a_ticket_has_ended", "WASI has no event that is a file"},
    {"every_allocation_of_opening_may_fail", "WASI has no event that is a file"},
    {"a_ticket_that_fails_leaves_the_output_untouched", NUMBERS},
    /* test_chunks */
    {"chunks_that_cannot_be_are_refused", DIRECT},
    {"a_writable_mapping_is_private", LOCKS},
    {"every_failure_of_a_writable_mapping_is_a_status", LOCKS},
    {"a_range_has_its_rows_and_no_others", LOCKS},
    {"the_sum_over_all_ranks_is_the_whole_table", LOCKS},
    /* test_pack */
    {"a_bundle_is_one_read", DIRECT},
    /* test_rows, test_batch */
    {"every_placement_is_as_row_after_row", LOCKS},
    {"whatever_fails_is_a_status", NUMBERS},
    {"a_batch_gives_what_a_lookup_gives", LOCKS},
    {"statistics_count_what_was_done", LOCKS},
    {"one_row_in_so_many_is_verified", LOCKS},
    /* test_corpus */
    {"a_file_of_tokens_that_changes_is_noticed", MAPPED},
    {"every_allocation_and_every_call_can_fail", "fewer calls, so fewer can fail"},
    /* test_gpt_make, test_head, test_train */
    {"parameters_are_as_many_as_published", SMALL},
    {"other_arguments_are_refused", SMALL},
    {"a_head_has_at_most_two_to_the_31_tokens", SMALL},
    {"what_does_not_fit_is_refused", SMALL},
    /* test_gpt_ngram: it tries until it works */
    {"sharing_may_fail_anywhere", LOCKS},
    {"shared_rows_are_seen_by_others", LOCKS},
    /* test_growth */
    {"a_longer_prompt_takes_no_square", "WASI does not tell the processor time of a program"},
    {"more_tensors_take_no_square", "WASI does not tell the processor time of a program"},
    {"more_words_take_no_square", "WASI does not tell the processor time of a program"},
};

#endif
