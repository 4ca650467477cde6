//===- Launcher.c - What started this process -----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "runtime/src/world/Launcher.h"
#include "burst/internal/error.h"
#include "burst/internal/hash.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define INVALID(...)                                                           \
  burst_error_create(BURST_INVALID_ARGUMENT, "", "world: " __VA_ARGS__)

enum { MOST_RANKS = 1 << 16, MOST_PORT = 65535 };

// Which variables a launcher sets, and where rank 0 can be found.
typedef struct launcher {
  const char *name, *rank, *num_ranks, *local_rank;
  const char *local_size; // ranks on this machine
  const char *host, *port;
  const char *hosts; // a list of hosts, as Slurm writes it
  const char *jobs[2];
} launcher;

// Within an allocation of Slurm its variables are set for all; they come last.
static const launcher launchers[] = {
    {.name = "the environment",
     .rank = "BURST_RANK",
     .num_ranks = "BURST_NUM_RANKS",
     .local_rank = "BURST_LOCAL_RANK"},
    {.name = "mpirun",
     .rank = "OMPI_COMM_WORLD_RANK",
     .num_ranks = "OMPI_COMM_WORLD_SIZE",
     .local_rank = "OMPI_COMM_WORLD_LOCAL_RANK",
     .local_size = "OMPI_COMM_WORLD_LOCAL_SIZE",
     .jobs = {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"}},
    {.name = "torchrun",
     .rank = "RANK",
     .num_ranks = "WORLD_SIZE",
     .local_rank = "LOCAL_RANK",
     .host = "MASTER_ADDR",
     .port = "MASTER_PORT"},
    {.name = "mpiexec",
     .rank = "PMI_RANK",
     .num_ranks = "PMI_SIZE",
     .local_rank = "MPI_LOCALRANKID",
     .local_size = "MPI_LOCALNRANKS",
     .jobs = {"PMI_JOBID", "HYDRA_JOBID"}},
    {.name = "srun",
     .rank = "SLURM_PROCID",
     .num_ranks = "SLURM_NTASKS",
     .local_rank = "SLURM_LOCALID",
     .hosts = "SLURM_STEP_NODELIST",
     .jobs = {"SLURM_JOB_ID", "SLURM_STEP_ID"}},
};

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

static bool parse(const char *text, int64_t least, int64_t most,
                  int64_t *value) {
  char *end;
  errno = 0;
  long long parsed = strtoll(text, &end, 10);
  bool digits = (*text >= '0' && *text <= '9') || *text == '-';
  *value = parsed;
  return digits && !*end && errno == 0 && parsed >= least && parsed <= most;
}

static burst_error *read_number(const char *variable, const char *because,
                                int64_t least, int64_t most, int64_t *value) {
  const char *text = getenv(variable);
  if (!text)
    return INVALID("%s is not set, but %s is", variable, because);
  if (!parse(text, least, most, value))
    return INVALID("%s is \"%s\", wanted a number from %" PRId64 " to %" PRId64,
                   variable, text, least, most);
  return NULL;
}

//===----------------------------------------------------------------------===//
// Addresses
//===----------------------------------------------------------------------===//

static burst_error *set_host(burst_place *place, const char *source,
                             const char *host, size_t length) {
  if (length == 0 || length >= sizeof(place->host))
    return INVALID("%s: a host of %zu characters, wanted 1 to %zu", source,
                   length, sizeof(place->host) - 1);
  memcpy(place->host, host, length);
  place->host[length] = 0;
  return NULL;
}

// "host:port", "[::1]:port".
static burst_error *read_address(const char *source, const char *text,
                                 burst_place *place) {
  const char *colon = strrchr(text, ':');
  if (!colon || !parse(colon + 1, 1, MOST_PORT, &place->port))
    return INVALID("%s is \"%s\", wanted host:port with a port from 1 to %d",
                   source, text, MOST_PORT);
  size_t length = (size_t)(colon - text);
  if (length >= 2 && text[0] == '[' && colon[-1] == ']')
    return set_host(place, source, text + 1, length - 2);
  return set_host(place, source, text, length);
}

// The first of "gpu[07-09,12],login", which is gpu07.
static burst_error *read_first_host(const char *variable, const char *list,
                                    burst_place *place) {
  char host[BURST_HOST_BYTES];
  size_t length = 0;
  bool inside = false;
  for (const char *c = list; *c; ++c) {
    if (*c == ',' || *c == ']' || (inside && *c == '-'))
      break;
    if (*c == '[') {
      inside = true;
      continue;
    }
    if (length + 1 >= sizeof(host))
      return INVALID("%s is \"%s\": the first host is too long", variable,
                     list);
    host[length++] = *c;
  }
  // What follows the brackets belongs to the name.
  const char *behind = inside ? strchr(list, ']') : NULL;
  if (inside && !behind)
    return INVALID("%s is \"%s\", wanted hosts such as gpu[07-09,12]", variable,
                   list);
  for (; behind && behind[1] && behind[1] != ','; ++behind) {
    if (behind[1] == '[' || length + 1 >= sizeof(host))
      return INVALID("%s is \"%s\", wanted hosts such as gpu[07-09,12]",
                     variable, list);
    host[length++] = behind[1];
  }
  return set_host(place, variable, host, length);
}

// The same on all ranks of a job, and rarely that of another job; below the
// ports that systems give out.
static int64_t port_of_job(const launcher *launcher) {
  uint64_t hash = BURST_HASH_BEGIN;
  for (int i = 0; i < 2; ++i) {
    const char *job = launcher->jobs[i] ? getenv(launcher->jobs[i]) : NULL;
    if (job)
      hash = burst_hash(hash, job, strlen(job));
  }
  return 20000 + (int64_t)(hash % 12000);
}

static burst_error *guess_address(const launcher *launcher,
                                  burst_place *place) {
  if (launcher->host) {
    const char *host = getenv(launcher->host);
    if (!host)
      return INVALID("%s is not set, but %s is", launcher->host,
                     launcher->rank);
    burst_error *error = set_host(place, launcher->host, host, strlen(host));
    if (!error)
      error = read_number(launcher->port, launcher->rank, 1, MOST_PORT - 1,
                          &place->port);
    ++place->port;
    return error;
  }
  place->port = port_of_job(launcher);
  if (launcher->hosts) {
    const char *variable =
        getenv(launcher->hosts) ? launcher->hosts : "SLURM_NODELIST";
    const char *list = getenv(variable);
    return list ? read_first_host(variable, list, place)
                : INVALID("%s is not set, but %s is", launcher->hosts,
                          launcher->rank);
  }
  int64_t local = 0;
  burst_error *error = NULL;
  if (launcher->local_size && getenv(launcher->local_size))
    error = read_number(launcher->local_size, launcher->rank, 1, MOST_RANKS,
                        &local);
  if (error)
    return error;
  if (local != place->num_ranks)
    return INVALID("%s does not say where rank 0 listens, and %" PRId64
                   " of %" PRId64 " ranks are known to be on this machine: "
                   "set BURST_ADDRESS to host:port",
                   launcher->name, local, place->num_ranks);
  return set_host(place, launcher->name, "127.0.0.1", strlen("127.0.0.1"));
}

static burst_error *find_address(const burst_world_config *config,
                                 const launcher *launcher, burst_place *place) {
  if (config->address)
    return read_address("address", config->address, place);
  const char *address = getenv("BURST_ADDRESS");
  if (address)
    return read_address("BURST_ADDRESS", address, place);
  if (!launcher)
    return place->num_ranks == 1
               ? NULL
               : INVALID("no address, and BURST_ADDRESS is not set, wanted "
                         "host:port of rank 0");
  burst_error *error = guess_address(launcher, place);
  if (!error && getenv("BURST_PORT"))
    error = read_number("BURST_PORT", "", 1, MOST_PORT, &place->port);
  return error;
}

//===----------------------------------------------------------------------===//
// Ranks
//===----------------------------------------------------------------------===//

static const launcher *find_launcher(void) {
  for (size_t i = 0; i < sizeof(launchers) / sizeof(*launchers); ++i)
    if (getenv(launchers[i].rank))
      return &launchers[i];
  return NULL;
}

static burst_error *read_ranks(const launcher *launcher, burst_place *place) {
  if (!launcher)
    return INVALID("no num_ranks, and none of BURST_RANK, "
                   "OMPI_COMM_WORLD_RANK, RANK, PMI_RANK and SLURM_PROCID is "
                   "set");
  burst_error *error = read_number(launcher->num_ranks, launcher->rank, 1,
                                   MOST_RANKS, &place->num_ranks);
  if (!error)
    error =
        read_number(launcher->rank, "", 0, place->num_ranks - 1, &place->rank);
  if (!error && getenv(launcher->local_rank))
    error = read_number(launcher->local_rank, launcher->rank, 0,
                        place->num_ranks - 1, &place->local_rank);
  return error;
}

burst_error *burst_place_find(const burst_world_config *config,
                              burst_place *place) {
  const launcher *launcher = find_launcher();
  burst_error *error = NULL;
  *place = (burst_place){.local_rank = -1};
  if (config->num_ranks == 0) {
    error = read_ranks(launcher, place);
  } else {
    if (config->num_ranks < 1 || config->num_ranks > MOST_RANKS)
      return INVALID("%" PRId64 " ranks, wanted 1 to %d", config->num_ranks,
                     MOST_RANKS);
    if (config->rank < 0 || config->rank >= config->num_ranks)
      return INVALID("rank %" PRId64 ", wanted 0 to %" PRId64, config->rank,
                     config->num_ranks - 1);
    place->rank = config->rank;
    place->num_ranks = config->num_ranks;
  }
  return error ? error : find_address(config, launcher, place);
}
