//===- Blocks.c - Large blocks of the host's memory -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "runtime/src/device/Blocks.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

// At the begin of its block.
typedef struct burst_kept_block {
  struct burst_kept_block *next;
  size_t bytes;
} kept_block;

enum { HUGE_PAGE = 2 << 20 };

// A sanitizer is to see what touches memory that was given back.
#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
static const bool keeps = false;
#else
static const bool keeps = true;
#endif

void burst_blocks_begin(burst_blocks *blocks) {
  *blocks = (burst_blocks){0};
  pthread_mutex_init(&blocks->mutex, NULL);
}

void burst_blocks_end(burst_blocks *blocks) {
  burst_blocks_trim(blocks);
  pthread_mutex_destroy(&blocks->mutex);
}

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

// Large blocks are whole huge pages.
static bool is_large(size_t bytes) {
  return bytes >= HUGE_PAGE && bytes <= SIZE_MAX - HUGE_PAGE;
}
static size_t whole_pages(size_t bytes) {
  return (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
}

static void *unlink_block(burst_blocks *blocks, kept_block **place) {
  kept_block *block = *place;
  *place = block->next;
  blocks->kept_bytes -= block->bytes;
  return block;
}

// Takes from those that are kept what must go if there is to be `room` within
// `bound`, the oldest first. They are freed without the mutex: that takes the
// system long.
static kept_block *drop(burst_blocks *blocks, size_t bound, size_t room) {
  kept_block *dropped = NULL;
  while (blocks->kept &&
         (bound < room || blocks->used + blocks->kept_bytes > bound - room)) {
    kept_block **oldest = &blocks->kept;
    while ((*oldest)->next)
      oldest = &(*oldest)->next;
    kept_block *block = unlink_block(blocks, oldest);
    block->next = dropped;
    dropped = block;
  }
  return dropped;
}

static size_t bound_of(const burst_blocks *blocks) {
  return keeps ? larger(blocks->most, blocks->before) : 0;
}

static void free_all(kept_block *block) {
  while (block) {
    kept_block *next = block->next;
    free(block);
    block = next;
  }
}

void burst_blocks_enter(burst_blocks *blocks) {
  pthread_mutex_lock(&blocks->mutex);
  ++blocks->runs;
  pthread_mutex_unlock(&blocks->mutex);
}

void burst_blocks_leave(burst_blocks *blocks) {
  kept_block *dropped = NULL;
  pthread_mutex_lock(&blocks->mutex);
  if (--blocks->runs == 0) {
    blocks->before = blocks->most;
    blocks->most = 0;
    dropped = drop(blocks, bound_of(blocks), 0);
  }
  pthread_mutex_unlock(&blocks->mutex);
  free_all(dropped);
}

// A block that is kept, or null. Then others make room for a new one.
static void *find(burst_blocks *blocks, size_t bytes, kept_block **dropped) {
  for (kept_block **place = &blocks->kept; *place; place = &(*place)->next)
    if ((*place)->bytes == bytes)
      return unlink_block(blocks, place);
  size_t bound = bound_of(blocks);
  bool grows = bytes > SIZE_MAX - blocks->used || blocks->used + bytes > bound;
  *dropped = drop(blocks, grows ? 0 : bound, bytes);
  return NULL;
}

static void *make(size_t bytes) {
  void *block;
  if (posix_memalign(&block, HUGE_PAGE, bytes))
    return NULL;
#ifdef MADV_HUGEPAGE
  (void)madvise(block, bytes, MADV_HUGEPAGE); // a hint: without it, slower
#endif
  return block;
}

void *burst_blocks_take(burst_blocks *blocks, size_t bytes) {
  void *block;
  if (!is_large(bytes))
    return posix_memalign(&block, BURST_BLOCK_ALIGNMENT, bytes) ? NULL : block;
  size_t whole = whole_pages(bytes);
  kept_block *dropped = NULL;
  pthread_mutex_lock(&blocks->mutex);
  block = find(blocks, whole, &dropped);
  blocks->used += whole;
  pthread_mutex_unlock(&blocks->mutex);
  free_all(dropped);
  if (!block)
    block = make(whole);
  pthread_mutex_lock(&blocks->mutex);
  if (block)
    blocks->most = larger(blocks->most, blocks->used);
  else
    blocks->used -= whole;
  pthread_mutex_unlock(&blocks->mutex);
  return block;
}

void burst_blocks_give(burst_blocks *blocks, void *given, size_t bytes) {
  if (!is_large(bytes)) {
    free(given);
    return;
  }
  kept_block *block = given;
  *block = (kept_block){.bytes = whole_pages(bytes)};
  pthread_mutex_lock(&blocks->mutex);
  blocks->used -= block->bytes;
  block->next = blocks->kept;
  blocks->kept = block;
  blocks->kept_bytes += block->bytes;
  kept_block *dropped = drop(blocks, bound_of(blocks), 0);
  pthread_mutex_unlock(&blocks->mutex);
  free_all(dropped);
}

void burst_blocks_trim(burst_blocks *blocks) {
  pthread_mutex_lock(&blocks->mutex);
  kept_block *dropped = drop(blocks, 0, 0);
  pthread_mutex_unlock(&blocks->mutex);
  free_all(dropped);
}
