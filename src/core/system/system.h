/* SPDX-License-Identifier: Apache-2.0 */
/* What Embla needs of the operating system, in terms of its own: no descriptor, flag, error number
 * or struct of a system goes through this header. One file for each system has these functions
 * (linux.c), with what the systems share in posix_*.c; CMake chooses the files.
 *
 * These functions have no messages, repeat nothing and count nothing. files/io.c does that, once
 * for all systems, and so can make any call fail in a test.
 */
#ifndef EMBLA_SYSTEM_SYSTEM_H
#define EMBLA_SYSTEM_SYSTEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- errors ---- */

typedef enum {
    EMBLA_SYSTEM_OK,
    EMBLA_SYSTEM_NOT_FOUND, /* no such file, or a part of its path is not a folder */
    EMBLA_SYSTEM_EXISTS,
    EMBLA_SYSTEM_BUSY, /* another process holds the lock */
    EMBLA_SYSTEM_NO_SPACE,
    EMBLA_SYSTEM_NO_MEMORY,
    EMBLA_SYSTEM_REFUSED, /* this user may not */
    EMBLA_SYSTEM_UNSUPPORTED,
    EMBLA_SYSTEM_LINK,        /* a symbolic link, and none was to be followed */
    EMBLA_SYSTEM_INTERRUPTED, /* a signal came first: call again */
    EMBLA_SYSTEM_OTHER
} embla_system_error;

/* How a call ended: the class of the error, and the system's own number for the message. */
typedef struct {
    embla_system_error error;
    int number;
} embla_outcome;

static inline bool embla_worked(embla_outcome outcome)
{
    return outcome.error == EMBLA_SYSTEM_OK;
}

/* An outcome of this class, with the system's usual number for it. */
embla_outcome embla_system_outcome(embla_system_error error);
/* Writes the system's sentence about an error number. */
void embla_system_describe(int number, char *out, size_t size);

/* ---- files ---- */

/* An open file, and an open folder, whose files can be opened by their names in it. */
typedef intptr_t embla_handle;
typedef intptr_t embla_folder;
enum {
    EMBLA_NO_FILE = -1, /* no file is open */
    EMBLA_HERE = -2     /* the current folder, or any if the name begins at the root */
};

/* Which file a path leads to. Files are compared by these numbers, because a path can be written in
 * many ways. */
typedef struct {
    uint64_t volume, id[2];
} embla_file_id;

static inline bool embla_same_file(embla_file_id a, embla_file_id b)
{
    return a.volume == b.volume && a.id[0] == b.id[0] && a.id[1] == b.id[1];
}

typedef enum {
    EMBLA_REGULAR_FILE,
    EMBLA_IS_FOLDER,
    EMBLA_IS_LINK,
    EMBLA_IS_PIPE,
    EMBLA_IS_DEVICE /* or a socket */
} embla_file_kind;

typedef struct {
    embla_file_id id;
    embla_file_kind kind;
    uint64_t size;
    int64_t seconds, nanoseconds; /* of the last change */
    unsigned mode;                /* permissions, as in chmod */
    unsigned user;                /* the owner */
    uint64_t names;               /* 0 means that it was removed, but is still open */
} embla_file_facts;

/* What a file is opened for. */
typedef enum {
    EMBLA_OPEN_READ = 1, /* a pipe does not wait for its other end */
    EMBLA_OPEN_WRITE = 2,
    EMBLA_OPEN_CREATE = 4,   /* if there is none */
    EMBLA_OPEN_NEW = 8,      /* create it; a file or link of this name is an error */
    EMBLA_OPEN_NO_LINK = 16, /* the name may not be a symbolic link */
    EMBLA_OPEN_FOLDER = 32   /* anything but a folder is an error; without READ it need not be
                                readable, and only its files can be opened */
} embla_open_intent;

/* mode: the permissions of a file that is created, less what the user masks. */
embla_outcome embla_system_open(embla_folder folder, const char *name, unsigned intents,
                                unsigned mode, embla_handle *out);
embla_outcome embla_system_close(embla_handle file);
embla_outcome embla_system_facts(embla_handle file, embla_file_facts *out);
/* The facts of a name; of a link itself if follow is false. */
embla_outcome embla_system_facts_at(embla_folder folder, const char *name, bool follow,
                                    embla_file_facts *out);
/* Transfers between 1 and `bytes` bytes; *got 0 means the end of the file. */
embla_outcome embla_system_read(embla_handle file, uint64_t offset, void *out, size_t bytes,
                                size_t *got);
embla_outcome embla_system_write(embla_handle file, const void *bytes, size_t count,
                                 size_t *written);
/* Opens a file a second time, for reads past the page cache. Such a read begins at a multiple of
 * EMBLA_DIRECT (files/io.h), and so do its size and its memory. */
embla_outcome embla_system_direct(embla_handle file, embla_handle *out);
/* A second handle of the same open file, which holds its lock too. */
embla_outcome embla_system_again(embla_handle file, embla_handle *out);
/* Tells the system that these bytes will not be read again. */
void embla_system_forget(embla_handle file, uint64_t offset, uint64_t bytes);
/* Gives a part of a file its space. UNSUPPORTED if the file system cannot. */
embla_outcome embla_system_allocate(embla_handle file, uint64_t offset, uint64_t bytes);
embla_outcome embla_system_set_size(embla_handle file, uint64_t size);
embla_outcome embla_system_set_mode(embla_handle file, unsigned mode);
/* Writes what the system holds back to the medium. */
embla_outcome embla_system_sync(embla_handle file);
/* Free bytes of the file system that the file is on. */
embla_outcome embla_system_space(embla_handle file, uint64_t *out);
/* The path of an open file; 0 if the system does not tell, else its length. */
size_t embla_system_path(embla_handle file, char *out, size_t size);

/* Names in a folder. Replaces `to`, or fails with EXISTS: then exactly one of several processes
 * that try at once succeeds. UNSUPPORTED if the file system can only replace. */
embla_outcome embla_system_rename(embla_folder folder, const char *from, const char *to,
                                  bool replace);
/* Gives a file a second name; EXISTS if there is such a name. */
embla_outcome embla_system_add_name(embla_folder folder, const char *name, const char *second);
embla_outcome embla_system_remove(embla_folder folder, const char *name);
embla_outcome embla_system_remove_folder(embla_folder folder, const char *name);
/* mode: its permissions, less what the user masks. */
embla_outcome embla_system_make_folder(const char *path, unsigned mode);
/* Whether this user may read it; links are followed. */
bool embla_system_readable(embla_folder folder, const char *name);
/* The target of a symbolic link, without a 0 after it; *length may be `size`. */
embla_outcome embla_system_link(embla_folder folder, const char *name, char *out, size_t size,
                                size_t *length);

/* The last separator between a folder and a name in a path; NULL if there is none. */
const char *embla_system_slash(const char *path);

/* The names in an open folder, "." and ".." too, in the system's order. A list that was begun owns
 * the folder. *name is NULL after the last, and is valid until the next call. */
typedef struct embla_names_list embla_names_list;
embla_outcome embla_system_list(embla_folder folder, embla_names_list **out);
embla_outcome embla_system_list_next(embla_names_list *list, const char **name);
void embla_system_list_end(embla_names_list *list);

/* A lock of an open file, which ends with the last handle of it, also if the process dies. BUSY if
 * another holds it; UNSUPPORTED if the file system has no locks. */
typedef enum { EMBLA_LOCK_ALONE, EMBLA_LOCK_SHARED } embla_lock_kind;
embla_outcome embla_system_lock(embla_handle file, embla_lock_kind kind);
/* Ends the lock, even if a forked child also has the file. */
void embla_system_unlock(embla_handle file);
/* Which process holds the lock that is not shared, and its user. */
bool embla_system_lock_holder(embla_handle file, long *process, unsigned *user);

/* ---- maps of files ---- */

typedef enum {
    EMBLA_MAP_READ,
    EMBLA_MAP_PRIVATE, /* may be written to; only this process sees what is written */
    EMBLA_MAP_SHARED   /* for reading and writing the file */
} embla_map_kind;

/* Maps the first `bytes` bytes, aligned to a huge page if they fill one. */
embla_outcome embla_system_map(embla_handle file, size_t bytes, embla_map_kind kind, void **out);
void embla_system_unmap(void *memory, size_t bytes);
/* For whole pages of a map. These are read in random order: the system need not read ahead. */
embla_outcome embla_system_random_order(void *memory, size_t bytes);
/* Sets the lowest bit of flags[i] if page i is in the page cache. */
embla_outcome embla_system_resident(void *memory, size_t bytes, unsigned char *flags);
/* Backs a shared map with huge pages before it is written to, see embla_io_huge_shared. */
bool embla_system_huge_shared(void *memory, size_t bytes);
/* Maps one page of each huge page. */
void embla_system_touch_huge(const void *memory, size_t bytes);

/* ---- an event for loops ---- */

/* A file that loops of events watch; a signal adds 1 to its count. */
embla_outcome embla_system_event(embla_handle *out);
embla_outcome embla_system_signal(embla_handle event);

/* ---- the process ---- */

long embla_system_process(void);
/* The user as files have it: embla_file_facts.user. */
unsigned embla_system_user(void);
/* Fills out with random bytes, without waiting. False if the system has none yet. */
bool embla_system_random(void *out, size_t bytes);
void embla_system_sleep(int64_t nanoseconds);
/* Nanoseconds of a clock that only goes forward. */
int64_t embla_system_clock(void);
/* The folder for files in memory that processes share; NULL if the system has none. */
const char *embla_system_memory_folder(void);

#endif
