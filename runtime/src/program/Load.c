//===- Load.c - Programs in shared objects --------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "burst/internal/error.h"
#include "burst/internal/seal.h"
#include "runtime/src/program/Program.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__x86_64__)
enum { MACHINE = EM_X86_64 };
#elif defined(__aarch64__)
enum { MACHINE = EM_AARCH64 };
#else
#error "name the ELF machine of this processor"
#endif

static const char *machine_name(int machine) {
  return machine == EM_X86_64    ? ", x86_64"
         : machine == EM_AARCH64 ? ", aarch64"
                                 : "";
}

#define INVALID(...)                                                           \
  burst_error_create(BURST_INVALID_PROGRAM, path, __VA_ARGS__)

static burst_error *system_error(const char *path) {
  return burst_error_create(BURST_SYSTEM, path, "%s", strerror(errno));
}

static bool within(uint64_t offset, uint64_t bytes, uint64_t file_bytes) {
  return offset <= file_bytes && bytes <= file_bytes - offset;
}

// dlopen maps what the headers promise, and a file that is shorter ends the
// process when it is touched.
static burst_error *check_segments(const char *path, int file,
                                   const Elf64_Ehdr *header,
                                   uint64_t file_bytes) {
  for (int i = 0; i < header->e_phnum; ++i) {
    Elf64_Phdr segment;
    off_t offset = (off_t)(header->e_phoff + (uint64_t)i * sizeof(segment));
    if (pread(file, &segment, sizeof(segment), offset) != sizeof(segment))
      return INVALID("truncated: no program header %d", i);
    if (!within(segment.p_offset, segment.p_filesz, file_bytes))
      return INVALID("truncated: %" PRIu64 " bytes, wanted %" PRIu64
                     " from byte %" PRIu64,
                     file_bytes, segment.p_filesz, segment.p_offset);
  }
  uint64_t sections = (uint64_t)header->e_shnum * header->e_shentsize;
  if (!within(header->e_shoff, sections, file_bytes))
    return INVALID("truncated: no section headers");
  return NULL;
}

// Of the first bytes of a file.
static burst_error *hash_file(const char *path, int file, uint64_t bytes,
                              uint64_t *hash) {
  char buffer[16384];
  *hash = BURST_HASH_BEGIN;
  for (uint64_t at = 0; at < bytes;) {
    uint64_t rest = bytes - at;
    ssize_t count = pread(
        file, buffer, rest < sizeof(buffer) ? rest : sizeof(buffer), (off_t)at);
    if (count < 0)
      return system_error(path);
    if (count == 0)
      return INVALID("truncated: no byte %" PRIu64, at);
    *hash = burst_hash(*hash, buffer, (size_t)count);
    at += (uint64_t)count;
  }
  return NULL;
}

// Shared objects that others have linked end without a seal, and are taken as
// they are.
static burst_error *check_seal(const char *path, int file,
                               uint64_t file_bytes) {
  burst_seal found, wanted;
  if (file_bytes < sizeof(found))
    return NULL;
  uint64_t bytes = file_bytes - sizeof(found), hash;
  if (pread(file, &found, sizeof(found), (off_t)bytes) != sizeof(found))
    return system_error(path);
  wanted = burst_seal_of(bytes, 0);
  if (memcmp(found.magic, wanted.magic, sizeof(found.magic)) != 0)
    return NULL;
  burst_error *error = hash_file(path, file, bytes, &hash);
  if (error || (found.bytes == bytes && found.checksum == hash))
    return error;
  return INVALID("damaged: %" PRIu64 " bytes of checksum %016" PRIx64
                 ", wanted %" PRIu64 " of %016" PRIx64 ": compile it again",
                 bytes, hash, found.bytes, found.checksum);
}

static burst_error *check_elf(const char *path, int file) {
  struct stat status;
  Elf64_Ehdr header;
  if (fstat(file, &status))
    return system_error(path);
  if (!S_ISREG(status.st_mode))
    return INVALID("not a file");
  ssize_t bytes = pread(file, &header, sizeof(header), 0);
  if (bytes < 0)
    return system_error(path);
  if (bytes < SELFMAG || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
    return INVALID("not a shared object");
  if (bytes < (ssize_t)sizeof(header))
    return INVALID("truncated: %zd bytes, wanted a header of %zu", bytes,
                   sizeof(header));
  if (header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_machine != MACHINE)
    return INVALID("for machine %d%s, wanted %d%s", header.e_machine,
                   machine_name(header.e_machine), MACHINE,
                   machine_name(MACHINE));
  if (header.e_type != ET_DYN || header.e_phentsize != sizeof(Elf64_Phdr))
    return INVALID("ELF type %d, wanted %d: a shared object", header.e_type,
                   ET_DYN);
  burst_error *error =
      check_segments(path, file, &header, (uint64_t)status.st_size);
  return error ? error : check_seal(path, file, (uint64_t)status.st_size);
}

static burst_error *check_file(const char *path) {
  int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0)
    return system_error(path);
  burst_error *error = check_elf(path, file);
  close(file);
  return error;
}

static void close_object(void *object) { dlclose(object); }

static burst_error *load(const char *path, void *object,
                         burst_program **program) {
  const burst_image *image = dlsym(object, BURST_IMAGE_SYMBOL);
  if (!image)
    return INVALID("not a program: it has no symbol " BURST_IMAGE_SYMBOL);
  burst_error *error =
      burst_program_from_image(image, close_object, object, program);
  if (!error)
    return NULL;
  burst_error *located = burst_error_create(burst_error_code(error), path, "%s",
                                            burst_error_message(error));
  burst_error_destroy(error);
  return located;
}

burst_error *burst_program_load(const char *path, burst_program **program) {
  BURST_REQUIRE(program);
  *program = NULL;
  BURST_REQUIRE(path);
  if (!*path)
    return burst_error_create(BURST_INVALID_ARGUMENT, "",
                              "burst_program_load: path: empty, wanted that of "
                              "a shared object");
  burst_error *error = check_file(path);
  if (error)
    return error;
  // dlopen searches for names that have no slash.
  char *file = realpath(path, NULL);
  if (!file)
    return system_error(path);
  void *object = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  free(file);
  if (!object)
    return INVALID("%s", dlerror());
  error = load(path, object, program);
  if (error)
    dlclose(object);
  return error;
}
