//===- Compiled.cpp - compiled programs on the machine's tensors ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/harness/Compiled.h"

#include "jit/Library.h"
#include "tools/harness/Tensors.h"

using namespace mlir;
using namespace burst;

static std::string take(burst_error *error) {
  std::string message = burst_error_message(error);
  burst_error_destroy(error);
  return message;
}

FailureOr<ProgramRef> burst::compile(func::FuncOp program,
                                     const jit::Target &target,
                                     const host::Dump &dump) {
  OwningOpRef<ModuleOp> module(cast<ModuleOp>(program->getParentOp()->clone()));
  auto objects = jit::compileToObjects(*module, program.getName(), target,
                                       host::Parts::Several, dump);
  if (failed(objects))
    return failure();
  jit::Compiled compiled;
  compiled.objects = std::move(*objects);
  burst_program *loaded = nullptr;
  if (burst_error *error = jit::install(std::move(compiled), &loaded))
    return program.emitError("cannot use its code: ") << take(error);
  return ProgramRef(loaded);
}

burst_tensor burst::viewOf(data::Tensor &tensor, int32_t type) {
  burst_tensor view{};
  view.data = tensor.bytes.data();
  view.type = type;
  view.rank = static_cast<int32_t>(tensor.shape.size());
  int64_t stride = 1;
  for (size_t d = tensor.shape.size(); d-- > 0;) {
    view.sizes[d] = tensor.shape[d];
    view.strides[d] = stride;
    stride *= tensor.shape[d];
  }
  return view;
}

/// A scalar argument as the runtime takes it.
static data::Tensor scalarOf(const Argument &argument, int32_t type) {
  auto make = [&](data::DType dtype) {
    data::Tensor tensor = data::Tensor::zeros(dtype, {});
    if (data::isFloat(dtype))
      tensor.set(0, argument.scalar.f);
    else if (dtype == data::DType::BOOL)
      *tensor.element(0) = std::byte(argument.scalar.i != 0);
    else
      std::memcpy(tensor.element(0), &argument.scalar.i, tensor.bytes.size());
    return tensor;
  };
  switch (type) {
  case BURST_F64:
    return make(data::DType::F64);
  case BURST_F32:
    return make(data::DType::F32);
  case BURST_BF16:
    return make(data::DType::BF16);
  case BURST_F16:
    return make(data::DType::F16);
  case BURST_I32:
    return make(data::DType::I32);
  case BURST_I16:
    return make(data::DType::I16);
  case BURST_I8:
    return make(data::DType::I8);
  case BURST_I1:
    return make(data::DType::BOOL);
  default:
    return make(data::DType::I64);
  }
}

static burst_error *makeDevice(burst_program *program,
                               const CompiledRun &options,
                               burst_device **device) {
  if (burst_program_is_gpu(program)) {
    burst_cuda_config config{};
    config.size = sizeof(config);
    config.ordinal = options.gpu;
    return burst_device_create_cuda(&config, device);
  }
  burst_device_config config{};
  config.size = sizeof(config);
  config.threads = options.threads;
  return burst_device_create_cpu(&config, device);
}

std::optional<std::string>
burst::runAll(burst_program *program, ArrayRef<burst_tensor> globals,
              const CompiledRun &options,
              std::vector<burst_counters> &counters) {
  burst_device *made = nullptr;
  if (!options.device)
    if (burst_error *error = makeDevice(program, options, &made))
      return take(error);
  std::unique_ptr<burst_device, decltype(&burst_device_destroy)> ownedDevice(
      made, burst_device_destroy);
  burst_trace *trace = nullptr;
  if (!options.trace.empty())
    if (burst_error *error = burst_trace_create(&trace))
      return take(error);
  std::unique_ptr<burst_trace, decltype(&burst_trace_destroy)> ownedTrace(
      trace, burst_trace_destroy);

  burst_counters empty{};
  empty.size = sizeof(empty);
  counters.assign(burst_program_num_ranks(program), empty);
  burst_run_all_config config{};
  config.size = sizeof(config);
  config.device = options.device ? options.device : made;
  config.deadline_seconds = options.deadline;
  config.checked = options.checked;
  config.trace = trace;
  config.latency_seconds = options.latency;
  config.bytes_per_second = options.bandwidth;
  config.transport = options.transport;
  burst_error *error =
      burst_run_all(program, &config, globals.data(),
                    static_cast<int64_t>(globals.size()), counters.data());
  // What was recorded tells most about a run that failed.
  if (trace)
    if (burst_error *unwritten =
            burst_trace_write(trace, options.trace.c_str())) {
      std::string message = take(unwritten);
      if (!error)
        return message;
    }
  if (error)
    return take(error);
  return std::nullopt;
}

std::optional<std::string> burst::run(burst_program *program,
                                      ArrayRef<Argument> globals,
                                      MutableArrayRef<TensorRef> results,
                                      const CompiledRun &options,
                                      std::vector<burst_counters> &counters) {
  std::vector<data::Tensor> storage;
  std::vector<burst_tensor> views;
  storage.reserve(globals.size() + results.size());
  for (auto [index, global] : llvm::enumerate(globals)) {
    const burst_parameter *parameter = burst_program_parameter(program, index);
    Argument argument = global;
    if (parameter->kind == BURST_EXTENT)
      // Filled below, from the tensor whose size it is.
      for (size_t other = 0; other < globals.size(); ++other) {
        const burst_parameter *p = burst_program_parameter(program, other);
        if (p->extent_parameter == static_cast<int32_t>(index) &&
            globals[other].table)
          argument.scalar.i = globals[other].table->shape[p->shard_dim];
      }
    storage.push_back(argument.table ? toData(*argument.table)
                                     : scalarOf(argument, parameter->type));
    views.push_back(viewOf(storage.back(), parameter->type));
  }
  for (auto [index, result] : llvm::enumerate(results)) {
    const burst_parameter *parameter =
        burst_program_parameter(program, globals.size() + index);
    std::vector<int64_t> shape(result->shape.begin(), result->shape.end());
    storage.push_back(data::Tensor::zeros(*dtypeOf(result->element), shape));
    views.push_back(viewOf(storage.back(), parameter->type));
  }

  if (auto error = runAll(program, views, options, counters))
    return error;
  for (auto [index, result] : llvm::enumerate(results)) {
    std::string message;
    std::vector<int64_t> shape(result->shape.begin(), result->shape.end());
    auto value =
        toArgument(storage[globals.size() + index],
                   RankedTensorType::get(shape, result->element), message);
    if (!value)
      return message;
    result = value->table;
  }
  return std::nullopt;
}
