//===- Loader.cpp - objects in this process -------------------------------===//
#include "jit/Loader.h"

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
jit::load(std::unique_ptr<MemoryBuffer> object) {
  auto linker = orc::LLJITBuilder().create();
  if (!linker)
    return linker.takeError();
  if (Error error = (*linker)->addObjectFile(std::move(object)))
    return error;
  auto image = (*linker)->lookup(BURST_IMAGE_SYMBOL);
  if (!image)
    return image.takeError();
  return std::make_unique<LinkedCode>(std::move(*linker),
                                      image->toPtr<const burst_image *>());
}
