// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <ostream>
#include <string_view>
#include <utility>

namespace varve::meta {

/// The value of a record, returned by a transaction. In a plain environment, a Value is a view into
/// the map. In an encrypted environment, a Value owns the decrypted bytes, so walking a table needs
/// memory only for the values that the caller keeps.
/// Lifetime: a view of the bytes dies with the Value, and with the data of the transaction (Txn).
class Value {
 public:
  /// Creates a view of bytes owned by the caller.
  explicit Value(std::string_view bytes) : bytes_(bytes) {}
  /// Takes over `size` bytes.
  Value(std::unique_ptr<char[]> owned, std::size_t size)
      : owned_(std::move(owned)), bytes_(owned_.get(), size) {}

  [[nodiscard]] std::string_view view() const& { return bytes_; }
  std::string_view view() && = delete;
  // A Value converts to a view of the bytes in calls. Views of a temporary would dangle.
  operator std::string_view() const& { return bytes_; }
  operator std::string_view() && = delete;
  [[nodiscard]] bool empty() const { return bytes_.empty(); }
  [[nodiscard]] std::size_t size() const { return bytes_.size(); }

  friend bool operator==(const Value& a, std::string_view b) { return a.bytes_ == b; }
  friend bool operator==(const Value& a, const Value& b) { return a.bytes_ == b.bytes_; }
  friend std::ostream& operator<<(std::ostream& out, const Value& value) {
    return out << value.bytes_;
  }

 private:
  std::unique_ptr<char[]> owned_;
  std::string_view bytes_;
};

}  // namespace varve::meta
