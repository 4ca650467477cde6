/*===- burst/program.h - what programs and the runtime share ------*- C -*-===*\
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                    *|
|*                                                                            *|
|* What a compiled program exports, and what it may call. A program is the    *|
|* code of one rank; every rank of a grid runs the same. It allocates, moves  *|
|* data and computes through a table of functions and through nothing else,   *|
|* so that one object file runs in process, from a shared object, and under   *|
|* a test that checks what it does.                                           *|
|*                                                                            *|
|* Hosts of programs need burst/burst.h only.                                 *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/
#ifndef BURST_PROGRAM_H
#define BURST_PROGRAM_H

#include "burst/version.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Both sides compare it: raised with every change that is not an addition to
   the end of a struct, and with what is added to burst_table. */
#define BURST_ABI_VERSION 13

/* The name under which a shared object exports its burst_image. */
#define BURST_IMAGE_SYMBOL "burst_program_image"

/* One run of a program on one rank; its content is the runtime's. */
typedef struct burst_rank burst_rank;

/* Types of elements. */
enum {
  BURST_F64 = 1,
  BURST_F32 = 2,
  BURST_BF16 = 3,
  BURST_F16 = 4,
  BURST_I64 = 5,
  BURST_I32 = 6,
  BURST_I16 = 7,
  BURST_I8 = 8,
  BURST_I1 = 9 /* a byte, 0 or 1 */
};

/*----------------------------------------------------------------------------*/
/* What a program calls                                                       */
/*----------------------------------------------------------------------------*/

/* A strided block of elements that travels as one. Sizes are at least 1;
   strides count elements. Where fewer than 4 dimensions are needed the first
   ones have the size 1. */
typedef struct burst_piece {
  void *data;
  int64_t element_bytes;
  int64_t sizes[4];
  int64_t strides[4];
} burst_piece;

/* What a launch touches, from the first to one past the last byte. */
enum { BURST_READS = 1, BURST_WRITES = 2 };
typedef struct burst_use {
  const void *begin;
  int64_t bytes;
  int64_t mode; /* BURST_READS, BURST_WRITES, or both */
} burst_use;

/* A kernel computes task number `task` of a launch. Tasks of a launch are
   independent; they run in any order and on any thread. */
typedef struct burst_kernel {
  const char *name;
  void (*run)(const void *arguments, int64_t task);
} burst_kernel;

/* A tensor map, for copies of a GPU that bring boxes of a tensor: over a buffer
   that lies in the arguments of a launch as
       void *data; int64_t steps[rank]; int32_t sizes[rank];
   where steps count elements and the last one is 1. */
typedef struct burst_gpu_map {
  int64_t buffer;  /* its offset in the arguments */
  int32_t type;    /* of the elements */
  int32_t rank;    /* 1 to 5 */
  int32_t box[5];  /* sizes of a box, outermost dimension first */
  int32_t swizzle; /* of rows in shared memory: over 0, 32, 64 or 128 bytes */
} burst_gpu_map;

/* A parameter of a kernel: bytes of the arguments of a launch, or a map. */
typedef struct burst_gpu_parameter {
  int64_t offset;
  int64_t bytes;
  const burst_gpu_map *map; /* NULL: the bytes */
} burst_gpu_parameter;

/* The code of one kernel. */
typedef struct burst_gpu_binary {
  /* "sm_80": machine code for GPUs of that major version and of that minor
     version or a later one; "sm_90a": for those alone; "compute_80": PTX, which
     ends with a zero, for these and all later ones. */
  const char *architecture;
  const void *data;
  int64_t bytes;
  uint64_t checksum; /* FNV-1a of the bytes */
} burst_gpu_binary;

/* A kernel of a GPU. Block number x of a launch does one task. */
typedef struct burst_gpu_kernel {
  const char *name;
  int32_t threads;      /* of a block */
  int32_t shared_bytes; /* dynamic, of a block */
  int64_t argument_bytes;
  int64_t num_parameters; /* at most 64 */
  const burst_gpu_parameter *parameters;
  int64_t num_binaries;
  const burst_gpu_binary *binaries; /* the first that fits is taken */
} burst_gpu_kernel;

/* What goes to another rank, or comes from it, at once. */
typedef struct burst_message {
  int64_t peer;
  int64_t receives; /* 1: it comes, 0: it goes */
  int64_t num_pieces;
  const burst_piece *pieces;
} burst_message;

/* Ranks along axes of the grid that follow each other: num_ranks of them, whose
   numbers differ by `stride`. The place of rank r among those of its group is
   r / stride % num_ranks. */
typedef struct burst_group {
  int64_t num_ranks, stride;
} burst_group;

/* Whether messages are part of a pattern that an engine may know, among the
   ranks of a group. These have the same in starts of one channel with the same
   number, and all of them or none have messages there. */
enum {
  BURST_POINT_TO_POINT = 0,
  BURST_GATHER_ALL = 1, /* to every other rank the same pieces, those of the own
                           shard, and from every other rank its own */
  BURST_EXCHANGE_ALL = 2 /* to every other rank pieces of its own, and from
                            every other rank those for this one. Messages of one
                            source have one size, or those of one destination,
                            so that a rank knows the sizes of all; those of size
                            0 are not there */
};

/* What one start begins. */
typedef struct burst_messages {
  int64_t count;
  int64_t pattern;
  const burst_message *list;
  burst_group group; /* of a pattern, else zeros */
} burst_messages;

/* Positions begin + (x / block) * step + x % block for x in [0, count). */
typedef struct burst_segment {
  int64_t begin;
  int64_t count;
  int64_t step;
  int64_t block;
} burst_segment;

/* How a transfer goes, as `ring.start` says. */
enum {
  BURST_SHIFT = 0,      /* the shard of `owner` to rank `to`, that of
                           `received_owner` from rank `from` */
  BURST_ALL_GATHER = 1, /* the own shard, that of `owner`, to all ranks, those
                           of all ranks into gathered tensors */
  BURST_TO_HEADS = 2, /* of the own shard, that of `owner`, a part of the heads
                         to each rank; the shards of all, of the own part of
                         the heads, into one tensor */
  BURST_TO_SEQUENCE = 3 /* the way back */
};

/* A tensor of a transfer: given as to `run` (MLIR's memref descriptor), with 1
   to 4 dimensions, of which `dim` is sharded, and `heads_dim` by an
   all-to-all; -1 by others. */
typedef struct burst_sharded {
  const void *tensor;
  int64_t dims, element_bytes, dim, heads_dim;
} burst_sharded;

/* Which messages there are. */
typedef struct burst_transfer {
  int64_t route;
  int64_t owner, to, received_owner, from; /* the last three of a shift */
  int64_t
      is_of_gathered; /* a shift sends the shard of `owner` out of tensors
                         that hold those of all ranks, one behind the other */
  /* The ranks are those of a group: num_ranks of them, whose numbers differ by
     `stride`. Peers are places in it; that of rank r is r / stride % num_ranks.
     Owners are places among all that share the sequence, of which the group may
     be a part. That of an all-to-all is this rank and neighbours of it: the
     place of `owner` among these is owner % num_ranks. */
  int64_t num_ranks, stride;
  int64_t groups;       /* of ranks and heads of an all-to-all, else 1 */
  int64_t num_owners;   /* that share the sequence */
  int64_t num_segments; /* of a shard */
  int64_t extent;
  /* Writes how many positions each segment of a shard has. */
  void (*counts)(int64_t owner, int64_t extent, int64_t *counts);
  /* Of an all-to-all, else NULL: writes where the positions of each segment of
     a shard lie in a tensor that has those of all ranks. */
  void (*in_group)(int64_t owner, int64_t extent, burst_segment *segments);
  /* A table of bytes by owner, turn and segment: what is not 0 travels. With 1
     owner, or 1 segment, all are alike. NULL: all of it does. The turn of an
     all-gather is the distance (receiver - owner) mod num_ranks. */
  const uint8_t *flags;
  int64_t flag_owners, flag_turns, flag_segments, turn;
  int64_t num_tensors;
  const burst_sharded *sends, *receives; /* as many of both */
} burst_transfer;

/* What an allocation is for; peak memory is counted by it. In a run on a GPU
   that of BURST_MEMORY_SCHEDULE is the host's, all other the GPU's. */
enum {
  BURST_MEMORY_STATE = 0,   /* softmax state that no caller's tensor can hold */
  BURST_MEMORY_SLICE = 1,   /* received slices */
  BURST_MEMORY_PACKING = 2, /* operands laid out for a kernel */
  BURST_MEMORY_SCHEDULE = 3 /* flags and lists of what is to do */
};

/* None of these returns to a program where it fails: the run ends there, its
   allocations are freed, and the host gets the error. */
typedef struct burst_table {
  uint32_t size;    /* of this struct in bytes */
  uint32_t version; /* BURST_ABI_VERSION */

  /* The number of this rank, row-major over the grid. */
  int64_t (*index)(burst_rank *rank);

  /* Memory for `bytes` bytes, aligned to 64, until `release` or the end. */
  void *(*allocate)(burst_rank *rank, int64_t bytes, int64_t kind);
  void (*release)(burst_rank *rank, void *memory);

  /* Writes to `order` the numbers 0 to count-1 by falling cost, equal ones by
     rising number. */
  void (*sort)(burst_rank *rank, const int64_t *costs, int64_t count,
               int32_t *order);

  /* Runs `tasks` tasks of `kernel`, begun in the order of `order` (all numbers
     below `tasks`, once each; null: rising), and returns when they are done. A
     task that has begun goes on until it is done, on a thread of its own: one
     that begins later may wait for it. `uses` lists the memory that they
     touch. */
  void (*launch)(burst_rank *rank, const burst_kernel *kernel,
                 const void *arguments, int64_t tasks, const int32_t *order,
                 int64_t num_uses, const burst_use *uses);

  /* Begins messages, each to or from another rank, whose side lists pieces of
     the same sizes. No pieces, no message. Messages are matched in the order in
     which they were started, per source, destination and channel. Until `wait`
     of the token, what is sent must not change and what is received must not be
     read. What a rank sends to itself with the start that receives it, is
     copied, and no message. */
  int64_t (*start)(burst_rank *rank, int64_t channel,
                   const burst_messages *messages);
  void (*wait)(burst_rank *rank, int64_t token);

  /* Ends the run where `found` is less than `wanted`; `what` says of what. */
  void (*require)(burst_rank *rank, int64_t found, int64_t wanted,
                  const char *what);

  /* On a GPU, where all that is asked for runs in the order of the calls,
     behind the program's back: `launch` alone computes before it returns, on
     the host. Memory that is released there is not used again before what was
     asked for earlier has run. */

  /* A copy for kernels of `bytes` bytes of the host, until `release` or the
     end; counted as BURST_MEMORY_SCHEDULE. They are read some time before the
     end of the run and must not change until then; they may be released. */
  void *(*upload)(burst_rank *rank, const void *memory, int64_t bytes);

  /* Runs `tasks` blocks of kernel number `kernel` of the image. The arguments
     are copied. */
  void (*launch_gpu)(burst_rank *rank, int64_t kernel, const void *arguments,
                     int64_t tasks, int64_t num_uses, const burst_use *uses);

  /* How many tasks of a launch run at a time, at most. */
  int64_t (*threads)(burst_rank *rank);

  /* What launches and messages list of tensors, which are given as to `run`
     (MLIR's memref descriptors), with their number of dimensions and the bytes
     of an element. */

  /* Writes to `use` that all of a tensor is used, in this mode. */
  void (*use)(burst_rank *rank, burst_use *use, const void *tensor,
              int64_t dims, int64_t element_bytes, int64_t mode);

  /* The messages of a transfer; valid until the next call of this rank. */
  const burst_messages *(*messages)(burst_rank *rank,
                                    const burst_transfer *transfer);
} burst_table;

/*----------------------------------------------------------------------------*/
/* What a program exports                                                     */
/*----------------------------------------------------------------------------*/

enum {
  BURST_TENSOR = 0,
  BURST_SCALAR = 1,
  BURST_EXTENT = 2 /* an i64: the global size of other arguments */
};

/* The largest size, of a tensor or of a sequence on all ranks, that kernels of
   GPUs count: room is left for what masks add to positions in 32 bits. */
enum { BURST_GPU_LARGEST_EXTENT = 1 << 30 };

/* A dimension of which rank r has part (r / stride) % parts of equal ones, one
   behind the other: heads, or batches. */
typedef struct burst_split {
  int32_t dim;
  int32_t parts;
  int64_t stride;
} burst_split;

/* One argument or result of a rank's program. */
typedef struct burst_parameter {
  const char *name;
  int32_t kind;
  int32_t type; /* of the elements, or of the scalar */
  int32_t rank; /* number of dimensions, 0 for scalars */
  int32_t is_result;
  const int64_t *sizes; /* of a rank's tensor; -1: known at run time */
  int32_t shard_dim; /* the dimension that is sharded over ranks; -1: none, the
                        same on every rank unless is_partial */
  int32_t num_segments;     /* of what a rank holds along shard_dim */
  int64_t extent;           /* the global size of shard_dim; -1: at run time */
  int32_t extent_parameter; /* the BURST_EXTENT parameter that carries it; -1:
                               none */
  int32_t is_partial; /* a result of which each rank gives a partial one: the
                         sum over the ranks is meant */
  int32_t is_host; /* of a program for GPUs: a tensor in the host's memory, such
                      as a table that a mask reads, because the schedule is made
                      on the host. All others are in the GPU's memory. */
  int32_t num_splits; /* dimensions that are sharded beside shard_dim, by rising
                         number */
  const burst_split *splits;
} burst_parameter;

/* Over how many equal parts a dimension is split; 1 where it is not. */
static inline int64_t burst_parameter_parts(const burst_parameter *parameter,
                                            int32_t dim) {
  for (int32_t i = 0; i < parameter->num_splits; ++i)
    if (parameter->splits[i].dim == dim)
      return parameter->splits[i].parts;
  return 1;
}

/* The size of a dimension of the global tensor; -1: known at run time. */
static inline int64_t
burst_parameter_global_size(const burst_parameter *parameter, int32_t dim) {
  if (dim == parameter->shard_dim)
    return parameter->extent;
  return parameter->sizes[dim] < 0
             ? -1
             : parameter->sizes[dim] * burst_parameter_parts(parameter, dim);
}

typedef struct burst_image {
  uint32_t size;    /* of this struct in bytes */
  uint32_t version; /* BURST_ABI_VERSION */
  const char *name;
  const char *target; /* the processor and features it was compiled for */
  int64_t num_ranks;
  int32_t num_parameters; /* arguments first, results behind them */
  int32_t num_arguments;
  const burst_parameter *parameters;

  /* Writes the segments of parameter `index` that `rank` holds, where the
     global size is `extent`: parameters[index].num_segments of them. */
  void (*segments)(int32_t index, int64_t rank, int64_t extent,
                   burst_segment *segments);

  /* The program of a rank. `values` has a pointer per parameter: to an element
     for scalars, to an int64_t for extents, for tensors to
         struct { void *base, *data;
                  int64_t offset, sizes[rank], strides[rank]; }
     (MLIR's memref descriptor; strides count elements; offset 0 is fine). The
     last stride of every tensor is 1. Results are written in place. */
  void (*run)(burst_rank *rank, const burst_table *table, void *const *values);

  /* Differs between programs of which ranks could not work together. */
  uint64_t hash;

  /* Of a program for GPUs. */
  int32_t minimum_driver; /* 12000 is CUDA 12.0; 0: the program is for CPUs */
  int32_t num_gpu_kernels;
  const burst_gpu_kernel *gpu_kernels;

  /* What the processor has to have for the code, by LLVM's names of features
     with commas between them, "avx2,fma": a program is refused where one is
     missing. NULL, and in images that end before it: not known. */
  const char *features;

  /* The version of burst that made it, BURST_VERSION_MAJOR and _MINOR: one that
     does not fit is refused. In images that end before it: not known. */
  int32_t version_major;
  int32_t version_minor;

  /* The groups among which transfers have patterns, but for those of all ranks:
     an engine may connect the ranks of each before the first transfer. */
  int64_t num_groups;
  const burst_group *groups;
} burst_image;

#ifdef __cplusplus
}
#endif

#endif /* BURST_PROGRAM_H */
