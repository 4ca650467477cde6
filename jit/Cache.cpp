//===- Cache.cpp - programs by what decided their code --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "jit/Cache.h"

#include <algorithm>

burst_cache::~burst_cache() {
  for (const auto &[key, program] : programs)
    burst_program_release(program);
}

burst_error *
burst_cache::get(const std::string &key,
                 llvm::function_ref<burst_error *(burst_program **)> make,
                 burst_program **program) {
  std::unique_lock lock(mutex);
  while (true) {
    auto [entry, isNew] = programs.try_emplace(key, nullptr);
    if (isNew)
      break;
    if (entry->second) {
      ++answered;
      *program = entry->second;
      burst_program_retain(*program);
      return nullptr;
    }
    changed.wait(lock);
  }
  lock.unlock();
  burst_error *error = make(program);
  lock.lock();
  if (error) {
    programs.erase(key);
  } else {
    programs[key] = *program;
    burst_program_retain(*program);
  }
  changed.notify_all();
  return error;
}

int64_t burst_cache::size() {
  std::lock_guard lock(mutex);
  return static_cast<int64_t>(
      std::count_if(programs.begin(), programs.end(),
                    [](const auto &entry) { return entry.second != nullptr; }));
}

int64_t burst_cache::hits() {
  std::lock_guard lock(mutex);
  return answered;
}
