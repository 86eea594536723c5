// SPDX-License-Identifier: Apache-2.0
// Ended requests: bytes that stay in memory, and bytes written to the cache.
#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>

#include "remote/cell_state.h"

namespace varve::remote {

void CellReader::State::write_later(const FlightPointer& flight) {
  const bool is_behind = unwritten_bytes + flight->bytes() > limits.bytes_max;
  flight->is_in_cache = (is_behind && !flight->is_ahead) || is_closed;
  if (flight->is_in_cache) return;
  flight->is_writing = true;
  unwritten_bytes += flight->bytes();
  writer->run([self = shared_from_this(), flight] { self->write(flight); });
}

void CellReader::State::write_left() {
  const auto now = Clock::now();
  const auto is_left = [&](const Flight& flight) {
    return !flight.is_in_cache && !flight.is_writing && !flight.is_taken() &&
           !flight.is_unread(now, limits.unread_kept);
  };
  std::uint64_t left = 0;
  for (const auto& flight : held) left += is_left(*flight) ? flight->bytes() : 0;
  const auto left_max = std::min(limits.held_bytes_max, limits.bytes_max / 4);
  for (const auto& flight : held) {
    if (!is_left(*flight)) continue;
    if (left <= left_max && now - flight->received_at < limits.unread_kept) continue;
    left -= flight->bytes();
    write_later(flight);
  }
}

void CellReader::State::write(const FlightPointer& flight) {
  std::map<std::uint64_t, CellSet> blocks;
  {
    const Lock lock(mutex);
    for (auto cell = flight->begin; cell < flight->end && !flight->is_dropped; ++cell) {
      if (reads_once && flight->is_taken(cell)) continue;
      auto& set = blocks[cell / kCellsPerBlock];
      set = static_cast<CellSet>(set | cell_bit(cell));
    }
  }
  for (const auto& [block, set] : blocks) {
    cache.add(flight->object, block, set, flight->part_of(block));
  }
  Lock lock(mutex);
  flight->is_writing = false;
  flight->is_in_cache = true;
  unwritten_bytes -= flight->bytes();
  trim();
  start(lock);
}

void CellReader::State::trim() {
  const auto now = Clock::now();
  write_left();
  const auto held_max =
      lent_bytes() +
      (reads_once ? std::min(limits.held_bytes_max, kHeldOnceBytesMax) : limits.held_bytes_max);
  for (auto at = held.begin(); held_bytes > held_max && at != held.end();) {
    const auto& flight = **at;
    if (is_pinned(flight, now)) {
      ++at;
      continue;
    }
    forget(flight);
    held_bytes -= flight.bytes();
    at = held.erase(at);
  }
}

void CellReader::State::drop_all() {
  {
    const Lock lock(mutex);
    for (const auto& flight : held) forget(*flight);
    std::erase_if(held, [this](const FlightPointer& flight) {
      if (!flight->is_writing) held_bytes -= flight->bytes();
      return !flight->is_writing;
    });
  }
  cache.clear();
}

void CellReader::State::drop(const ObjectRange& range) {
  {
    const Lock lock(mutex);
    for (auto cell = first_cell(range); cell < end_cell(range); ++cell) {
      const auto found = cells.find({range.object, cell});
      if (found == cells.end() || found->second->step != Flight::Step::kReceived) continue;
      const auto flight = found->second;
      flight->is_dropped = true;
      if (!flight->is_writing) flight->is_in_cache = true;  // The flight will not be written.
      forget(*flight);
    }
  }
  for (auto cell = first_cell(range); cell < end_cell(range);) {
    const auto block = cell / kCellsPerBlock;
    cache.remove(range.object, block);
    cell = (block + 1) * kCellsPerBlock;
  }
}

}  // namespace varve::remote
