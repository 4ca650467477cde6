//===- NewFile.c - A file that is there when it is whole ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "runtime/src/base/NewFile.h"
#include "runtime/src/base/Clock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

// Negative where the file system has none, or /proc cannot name it later.
static int open_unnamed(const char *path, mode_t mode) {
  char folder[PATH_MAX];
  const char *slash = strrchr(path, '/');
  if (access("/proc/self/fd", X_OK))
    return -1;
  snprintf(folder, sizeof(folder), "%.*s",
           !slash          ? 1
           : slash == path ? 1
                           : (int)(slash - path),
           slash ? path : ".");
  return open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, mode);
}

int burst_new_file_open(burst_new_file *file, const char *path, mode_t mode) {
  if (strlen(path) >= sizeof(file->path))
    return ENAMETOOLONG;
  strcpy(file->path, path);
  snprintf(file->temporary, sizeof(file->temporary), "%s.%ld.%" PRId64 ".tmp",
           path, (long)getpid(), burst_now());
  file->descriptor = open_unnamed(path, mode);
  file->has_name = file->descriptor < 0;
  // Not mkstemp: the file gets the permissions that files get here.
  if (file->has_name)
    file->descriptor =
        open(file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  return file->descriptor < 0 ? errno : 0;
}

static bool give_name(const burst_new_file *file) {
  char self[64];
  snprintf(self, sizeof(self), "/proc/self/fd/%d", file->descriptor);
  return linkat(AT_FDCWD, self, AT_FDCWD, file->temporary, AT_SYMLINK_FOLLOW) ==
         0;
}

static bool move(const burst_new_file *file, bool replaces) {
  if (!replaces && (renameat2(AT_FDCWD, file->temporary, AT_FDCWD, file->path,
                              RENAME_NOREPLACE) == 0 ||
                    errno == EEXIST))
    return true;
  // Not all file systems know the flag.
  return rename(file->temporary, file->path) == 0;
}

int burst_new_file_keep(burst_new_file *file, bool replaces) {
  if (!file->has_name)
    file->has_name = give_name(file);
  int failure = file->has_name && move(file, replaces) ? 0 : errno;
  burst_new_file_drop(file);
  return failure;
}

void burst_new_file_drop(burst_new_file *file) {
  close(file->descriptor);
  if (file->has_name)
    unlink(file->temporary); // gone if it was moved
}
