//===- Loader.cpp - objects in this process -------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "jit/Loader.h"

#include "llvm/ExecutionEngine/Orc/ExecutionUtils.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"

using namespace llvm;
using namespace burst;

namespace {
class LinkedCode : public jit::Code {
public:
  LinkedCode(std::unique_ptr<orc::LLJIT> linker, const burst_image *exported)
      : linker(std::move(linker)), exported(exported) {}

  const burst_image *image() const override { return exported; }

private:
  std::unique_ptr<orc::LLJIT> linker;
  const burst_image *exported;
};
} // namespace

Expected<std::unique_ptr<jit::Code>>
jit::load(SmallVector<std::unique_ptr<MemoryBuffer>, 0> objects) {
  auto linker = orc::LLJITBuilder().create();
  if (!linker)
    return linker.takeError();
  // What programs may call, functions of mathematics and, where a processor
  // lacks conversions, of the compiler, by the name under which any process
  // finds it: a host that loaded this library privately need not have it among
  // its own symbols.
  for (const char *library : {"libm.so.6", "libgcc_s.so.1"}) {
    auto functions = orc::DynamicLibrarySearchGenerator::Load(
        library, (*linker)->getDataLayout().getGlobalPrefix());
    if (!functions)
      return functions.takeError();
    (*linker)->getMainJITDylib().addGenerator(std::move(*functions));
  }
  for (std::unique_ptr<MemoryBuffer> &object : objects)
    if (Error error = (*linker)->addObjectFile(std::move(object)))
      return error;
  auto image = (*linker)->lookup(BURST_IMAGE_SYMBOL);
  if (!image)
    return image.takeError();
  return std::make_unique<LinkedCode>(std::move(*linker),
                                      image->toPtr<const burst_image *>());
}
