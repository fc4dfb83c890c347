// What an unfinished or mistaken download leaves behind.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "io/file.h"

namespace deltafin::checkpoint {

// Whether the first bytes of a file say that it is a Git-LFS pointer: a clone without `git lfs` has
// a text file of some 130 bytes in the place of every large file.
bool is_pointer_file(std::string_view first_bytes);
inline constexpr size_t kPointerFileBytes = 40;  // enough of a file to tell

// Unfinished files of the usual downloaders, as paths relative to `directory`, sorted: beside the
// shards, in .cache/huggingface/download, and in ../../blobs if `directory` is a snapshot of a
// Hugging Face cache. Folders that do not exist or cannot be listed have none.
std::vector<std::string> find_unfinished_files(const io::Storage& storage,
                                               const std::string& directory);

}  // namespace deltafin::checkpoint
