//===- Locate.c - Libraries by name, not opened ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "runtime/src/cuda/Locate.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

char *burst_path_of(void *object) {
  struct link_map *map;
  if (dlinfo(object, RTLD_DI_LINKMAP, &map) != 0)
    return NULL;
  char *path = realpath(map->l_name, NULL);
  return path ? path : strdup(map->l_name);
}

static char *among_open(const char *name) {
  void *object = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
  if (!object)
    return NULL;
  char *path = burst_path_of(object);
  dlclose(object);
  return path;
}

// The folders of LD_LIBRARY_PATH, of the program and of the system.
static char *in_folders(const char *name) {
  Dl_serinfo size, *folders = NULL;
  char *found = NULL;
  void *program = dlopen(NULL, RTLD_LAZY);
  if (program && dlinfo(program, RTLD_DI_SERINFOSIZE, &size) == 0)
    folders = malloc(size.dls_size);
  if (folders && dlinfo(program, RTLD_DI_SERINFOSIZE, folders) == 0 &&
      dlinfo(program, RTLD_DI_SERINFO, folders) == 0)
    for (unsigned i = 0; i < folders->dls_cnt && !found; ++i) {
      char path[PATH_MAX];
      int length = snprintf(path, sizeof(path), "%s/%s",
                            folders->dls_serpath[i].dls_name, name);
      if (length > 0 && (size_t)length < sizeof(path))
        found = realpath(path, NULL);
    }
  free(folders);
  if (program)
    dlclose(program);
  return found;
}

// The loader's cache has paths as texts that a zero ends, and says by numbers
// which is for whom. Libraries that burst looks for are there once.
static char *in_cache(const char *name) {
  struct stat status;
  char *found = NULL;
  int file = open("/etc/ld.so.cache", O_RDONLY | O_CLOEXEC);
  void *mapped = MAP_FAILED;
  if (file >= 0 && fstat(file, &status) == 0 && status.st_size > 0)
    mapped =
        mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
  if (file >= 0)
    close(file);
  if (mapped == MAP_FAILED)
    return NULL;
  const char *begin = mapped, *end = begin + status.st_size, *at = begin;
  size_t length = strlen(name) + 1; // its zero, too
  while (!found && (at = memmem(at, (size_t)(end - at), name, length))) {
    const char *first = at;
    while (first > begin && first[-1] != '\0')
      --first;
    if (*first == '/' && at[-1] == '/')
      found = realpath(first, NULL);
    at += length;
  }
  munmap(mapped, (size_t)status.st_size);
  return found;
}

static char *locate(const char *name) {
  if (strchr(name, '/'))
    return realpath(name, NULL);
  char *found = among_open(name);
  if (!found)
    found = in_folders(name);
  return found ? found : in_cache(name);
}

const char *burst_found_no_file(const char *path) {
  struct stat status;
  if (stat(path, &status) != 0 || S_ISREG(status.st_mode))
    return NULL;
  if (S_ISDIR(status.st_mode))
    return "a directory";
  return S_ISFIFO(status.st_mode) ? "a pipe" : "a device";
}

char *burst_locate(const char *name) {
  char *found = locate(name);
  if (!found || !burst_found_no_file(found))
    return found;
  free(found);
  return NULL;
}
