// The page: the viewer, which is one HTML file, with the blocks of a trace in it.
//
// Each block is compressed with gzip and stands in the page as base64, in a script element of its
// own, so that the browser can free the text of a block as soon as it has decoded it. The last
// element is the index.
#pragma once

#include <functional>
#include <string_view>

namespace gofer::tool {

class PageWriter {
 public:
  using Output = std::function<void(std::string_view)>;

  explicit PageWriter(Output output);

  void block(std::string_view bytes) { element("block", bytes); }
  /// Ends the page.
  void finish(std::string_view index);

 private:
  void element(std::string_view kind, std::string_view bytes);

  Output output_;
};

}  // namespace gofer::tool
