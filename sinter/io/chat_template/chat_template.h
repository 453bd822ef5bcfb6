#pragma once
// The part of the Jinja language that chat templates are written in, with the settings that Hugging Face renders them
// with (trim_blocks, lstrip_blocks). Values cannot be changed by a template, but for the attributes of a `namespace`.
// Templates come from anywhere: a rendering is bounded in depth, work and output, and ends in an Error beyond that.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace sinter {

struct ChatTemplateLimits {
  int64_t work = 100'000'000;         // expressions evaluated and, at eight to one, bytes written
  size_t output = size_t(256) << 20;  // bytes
};

class ChatTemplate {
 public:
  // Throws an Error that names the line when the template is not understood.
  explicit ChatTemplate(std::string_view source);

  // `context` is a JSON object: the variables of the template.
  std::string render(std::string_view context, const ChatTemplateLimits& limits = {}) const;

 private:
  struct Body;
  std::shared_ptr<const Body> body_;
};

}  // namespace sinter
