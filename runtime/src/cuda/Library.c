//===- Library.c - Libraries that may be missing --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "runtime/src/cuda/Library.h"
#include "burst/internal/error.h"
#include "runtime/src/cuda/Locate.h"

#include <dlfcn.h>
#include <limits.h>
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

// What is done with a name of a library until it gives something.
typedef void *visit(const char *name, void *context);

static void *try_open(const char *name, void *context) {
  tried *tried = context;
  const char *found = strchr(name, '/') ? burst_found_no_file(name) : NULL;
  if (found) {
    note(tried, tried->length ? ", %s" : "%s", name);
    note(tried, " (found %s, wanted a regular file)", found);
    return NULL;
  }
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

static void *locate(const char *name, void *context) {
  (void)context;
  return burst_locate(name);
}

// Each name in the folder `parent`/`child`, if there are such.
static void *search_folder(const burst_library *library, const char *parent,
                           const char *child, visit *visit, void *context) {
  void *found = NULL;
  if (!parent || !*parent || !child)
    return NULL;
  for (const char *const *name = library->names; *name && !found; ++name) {
    char path[PATH_MAX];
    int length = snprintf(path, sizeof(path), "%s/%s/%s", parent, child, *name);
    if (length > 0 && (size_t)length < sizeof(path))
      found = visit(path, context);
  }
  return found;
}

// Where scripts/setup puts the libraries.
static void *search_setup(const burst_library *library, visit *visit,
                          void *context) {
  char folder[PATH_MAX];
  const char *cache = getenv("XDG_CACHE_HOME");
  bool home = !cache || !*cache;
  int length = snprintf(folder, sizeof(folder),
                        home ? "%s/.cache/burst/cuda" : "%s/burst/cuda",
                        home ? getenv("HOME") ? getenv("HOME") : "" : cache);
  if (length < 0 || (size_t)length >= sizeof(folder))
    return NULL;
  return search_folder(library, folder, library->wheel, visit, context);
}

// What the variable names, or null.
static const char *given_for(const burst_library *library) {
  const char *given = getenv(library->variable);
  return given && *given ? given : NULL;
}

// All names in their order.
static void *search(const burst_library *library, visit *visit, void *context) {
  const char *given = given_for(library);
  if (given)
    return visit(given, context);
  void *found = NULL;
  for (const char *const *name = library->names; *name && !found; ++name)
    found = visit(*name, context);
  const char *homes[] = {getenv("CUDA_PATH"), getenv("CUDA_HOME"),
                         "/usr/local/cuda"};
  for (size_t i = 0; i < sizeof(homes) / sizeof(*homes) && !found; ++i)
    found = search_folder(library, homes[i], "lib64", visit, context);
  return found ? found : search_setup(library, visit, context);
}

static burst_error *find(const burst_library *library, void **object) {
  tried tried = {.length = 0};
  *object = search(library, try_open, &tried);
  if (*object)
    return NULL;
  return burst_error_create(BURST_SYSTEM, "",
                            given_for(library)
                                ? "%s: cannot open what %s names: %s"
                                : "%s: not found; %s can name it; tried: %s",
                            library->what, library->variable, tried.text);
}

static burst_error *fill(const burst_library *library, void *object,
                         void *table) {
  const char *path = burst_path_of(object);
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
  for (const char *const *name = library->newer; name && *name; ++name) {
    void *function = dlsym(object, *name);
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

char *burst_library_locate(burst_library *library) {
  pthread_mutex_lock(&library->mutex);
  const void *table = library->stand_in ? library->stand_in : library->table;
  const char *path = NULL;
  if (table)
    memcpy(&path, table, sizeof(path));
  char *found = path ? strdup(path) : NULL;
  if (!table)
    found = search(library, locate, NULL);
  pthread_mutex_unlock(&library->mutex);
  return found;
}

void burst_library_stand_in(burst_library *library, const void *table) {
  pthread_mutex_lock(&library->mutex);
  library->stand_in = table;
  pthread_mutex_unlock(&library->mutex);
}
