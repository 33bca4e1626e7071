/* SPDX-License-Identifier: Apache-2.0 */
/* weft for C++ (11 and later): what has a begin and an end, as guards. Each says in its constructor what the C function
 * says, and in its destructor that it is over, on whichever way its block is left. They belong to the thread and the
 * block that they were made in: none can be copied or moved. A coroutine must not keep one over a co_await, which may
 * go on on another thread.
 *
 *     {
 *             weft::worker worker(runtime, index);     this thread, until it returns
 *             ...
 *             weft::poll poll(task.id, queue.size());
 *             weft::context context(task.context);
 *             task.resume();
 *     }
 *
 *     weft::wait wait(WEFT_WAIT_LOCK, name, &mutex);   around what waits; weft::lock does it for a mutex
 *
 * The functions of weft.h are there, too, and events can be emitted by both in one program. Nothing here allocates or
 * throws. */
#ifndef WEFT_WEFT_HPP
#define WEFT_WEFT_HPP

#include <cstdint>

#include "weft.h"

namespace weft
{

/* Guards cannot be copied. */
class guard
{
      protected:
	guard() = default;
	~guard() = default;

      public:
	guard(const guard &) = delete;
	guard &operator=(const guard &) = delete;
};

/* A poll of `task`: weft_poll_begin, weft_poll_end. */
class poll : guard
{
      public:
	explicit poll(std::uint64_t task, std::uint32_t depth = WEFT_DEPTH_UNKNOWN) noexcept
	{
		weft_poll_begin(task, depth);
	}
	~poll()
	{
		weft_poll_end();
	}
};

/* The thread waits for `object`: weft_wait_begin, weft_wait_end. */
class wait : guard
{
      public:
	wait(enum weft_wait what, std::uint32_t name, const void *object) noexcept
	    : what_(what), object_(reinterpret_cast<std::uintptr_t>(object))
	{
		weft_wait_begin(what_, name, object_);
	}
	~wait()
	{
		weft_wait_end(what_, object_);
	}

      private:
	enum weft_wait what_;
	std::uint64_t object_;
};

/* What the thread works for, until the one before is back: weft_context_swap. */
class context : guard
{
      public:
	explicit context(const struct weft_context &next) noexcept
	{
		weft_context_swap(&next, &before_);
	}
	~context()
	{
		weft_context_set(&before_);
	}

      private:
	struct weft_context before_;
};

/* The thread is worker `index` of `runtime`: weft_worker_enter, weft_worker_leave. */
class worker : guard
{
      public:
	worker(std::uint32_t runtime, std::uint32_t index) noexcept : id_(weft_worker_enter(runtime, index, nullptr))
	{
	}
	~worker()
	{
		weft_worker_leave();
	}

	/* For weft_wake; 0: it could not be entered. */
	std::uint32_t id() const noexcept
	{
		return id_;
	}

      private:
	std::uint32_t id_;
};

/* Has a mutex (anything with lock, try_lock and unlock) locked: who waits for it, and who has it meanwhile. `name` is
 * an id of weft_string. */
template <typename Mutex> class lock : guard
{
      public:
	lock(Mutex &mutex, std::uint32_t name) : mutex_(mutex)
	{
		if (!mutex_.try_lock()) {
			wait waiting(WEFT_WAIT_LOCK, name, &mutex_);
			mutex_.lock();
		}
		weft_lock_held(reinterpret_cast<std::uintptr_t>(&mutex_));
	}
	~lock()
	{
		weft_lock_released(reinterpret_cast<std::uintptr_t>(&mutex_));
		mutex_.unlock();
	}

      private:
	Mutex &mutex_;
};

} // namespace weft

#endif
