//===- Library.c - Libraries that may be missing --------------------------===//

#include "Library.h"
#include "../Error.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// What was tried, for the error. Long lists end early.
typedef struct tried {
  char text[4096];
  size_t length;
} tried;

__attribute__((format(printf, 2, 3))) static void
note(tried *tried, const char *format, ...) {
  size_t room = sizeof(tried->text) - tried->length;
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(tried->text + tried->length, room, format, arguments);
  va_end(arguments);
  if (length > 0)
    tried->length += (size_t)length < room ? (size_t)length : room - 1;
}

static void *try_open(const char *name, tried *tried) {
  void *object = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (object)
    return object;
  // That it is not there goes without saying; the loader has other reasons too.
  const char *reason = dlerror();
  size_t length = strlen(name);
  bool missing = strncmp(reason, name, length) == 0 &&
                 strncmp(reason + length, ": cannot open shared object file",
                         strlen(": cannot open shared object file")) == 0;
  note(tried, tried->length ? ", %s" : "%s", name);
  if (!missing)
    note(tried, " (%s)", reason);
  return NULL;
}

// Tries each name in the folder `parent`/`child`, if there are such.
static void *try_folder(const burst_library *library, const char *parent,
                        const char *child, tried *tried) {
  void *object = NULL;
  if (!parent || !*parent || !child)
    return NULL;
  for (const char *const *name = library->names; *name && !object; ++name) {
    char path[PATH_MAX];
    int length = snprintf(path, sizeof(path), "%s/%s/%s", parent, child, *name);
    if (length > 0 && (size_t)length < sizeof(path))
      object = try_open(path, tried);
  }
  return object;
}

// Where scripts/setup puts the libraries.
static void *try_setup(const burst_library *library, tried *tried) {
  char folder[PATH_MAX];
  const char *cache = getenv("XDG_CACHE_HOME");
  bool home = !cache || !*cache;
  int length = snprintf(folder, sizeof(folder),
                        home ? "%s/.cache/burst/cuda" : "%s/burst/cuda",
                        home ? getenv("HOME") ? getenv("HOME") : "" : cache);
  if (length < 0 || (size_t)length >= sizeof(folder))
    return NULL;
  return try_folder(library, folder, library->wheel, tried);
}

static burst_error *find(const burst_library *library, void **object) {
  tried tried = {.length = 0};
  const char *given = getenv(library->variable);
  if (given && *given) {
    *object = try_open(given, &tried);
    if (*object)
      return NULL;
    return burst_error_create(BURST_SYSTEM, "",
                              "%s: cannot open what %s names: %s",
                              library->what, library->variable, tried.text);
  }
  *object = NULL;
  for (const char *const *name = library->names; *name && !*object; ++name)
    *object = try_open(*name, &tried);
  if (!*object)
    *object = try_folder(library, getenv("CUDA_PATH"), "lib64", &tried);
  if (!*object)
    *object = try_folder(library, getenv("CUDA_HOME"), "lib64", &tried);
  if (!*object)
    *object = try_folder(library, "/usr/local/cuda", "lib64", &tried);
  if (!*object)
    *object = try_setup(library, &tried);
  if (*object)
    return NULL;
  return burst_error_create(BURST_SYSTEM, "",
                            "%s: not found; %s can name it; tried: %s",
                            library->what, library->variable, tried.text);
}

static char *path_of(void *object) {
  struct link_map *map;
  if (dlinfo(object, RTLD_DI_LINKMAP, &map) != 0)
    return NULL;
  char *path = realpath(map->l_name, NULL);
  return path ? path : strdup(map->l_name);
}

static burst_error *fill(const burst_library *library, void *object,
                         void *table) {
  const char *path = path_of(object);
  memcpy(table, &path, sizeof(path));
  char *place = (char *)table + sizeof(path);
  for (const char *const *name = library->functions; *name; ++name) {
    void *function = dlsym(object, *name);
    if (!function) {
      burst_error *error =
          burst_error_create(BURST_SYSTEM, "", "%s: %s has no function %s",
                             library->what, path ? path : "the library", *name);
      free((char *)path);
      return error;
    }
    memcpy(place, &function, sizeof(function));
    place += sizeof(function);
  }
  return NULL;
}

static burst_error *open_library(burst_library *library) {
  void *object, *table = calloc(1, library->table_bytes);
  if (!table)
    return burst_error_no_memory(library->table_bytes);
  burst_error *error = find(library, &object);
  if (!error) {
    error = fill(library, object, table);
    if (error)
      dlclose(object);
  }
  if (error) {
    free(table);
    return error;
  }
  if (library->opened)
    library->opened(table);
  library->table = table;
  return NULL;
}

burst_error *burst_library_table(burst_library *library, const void **table) {
  burst_error *error = NULL;
  pthread_mutex_lock(&library->mutex);
  if (!library->stand_in && !library->table)
    error = open_library(library);
  if (error)
    *table = NULL;
  else
    *table = library->stand_in ? library->stand_in : library->table;
  pthread_mutex_unlock(&library->mutex);
  return error;
}

void burst_library_stand_in(burst_library *library, const void *table) {
  pthread_mutex_lock(&library->mutex);
  library->stand_in = table;
  pthread_mutex_unlock(&library->mutex);
}
