// SPDX-License-Identifier: Apache-2.0
#include "version/inode_content.h"

namespace varve::version {

void InodeContent::set_recipe(format::Recipe made) {
  hole_bytes = made.bytes() - made.data_bytes();
  recipe = std::make_shared<const format::Recipe>(std::move(made));
}

void InodeContent::end_stream() {
  stream.reset();
  stream_finished = false;
}

}  // namespace varve::version
