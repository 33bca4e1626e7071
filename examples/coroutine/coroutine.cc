/* SPDX-License-Identifier: Apache-2.0 */
/* C++20 coroutines on two threads, with the guards of weft.hpp. A coroutine is a task, and each time that it is resumed
 * is a poll. A channel wakes the coroutine that waits for it: weft knows which coroutine did so.
 *
 * usage: coroutine [DIR]    records to DIR, coroutine-trace by default */
#include <chrono>
#include <condition_variable>
#include <coroutine>
#include <cstdio>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>
#include <weft/weft.hpp>

namespace
{

class scheduler;

/* A coroutine that nobody waits for. It is given to a scheduler, which resumes it until its end. */
class task
{
      public:
	struct promise_type {
		scheduler *home = nullptr;
		std::uint64_t id = 0;

		task get_return_object()
		{
			return task(std::coroutine_handle<promise_type>::from_promise(*this));
		}
		std::suspend_always initial_suspend() noexcept
		{
			return {};
		}
		std::suspend_always final_suspend() noexcept
		{
			return {};
		}
		void return_void()
		{
		}
		void unhandled_exception()
		{
			std::terminate();
		}
	};
	using handle = std::coroutine_handle<promise_type>;

	handle release()
	{
		return std::exchange(handle_, nullptr);
	}

      private:
	explicit task(handle from) : handle_(from)
	{
	}
	handle handle_;
};

class scheduler
{
      public:
	scheduler()
	{
		struct weft_runtime_opts opts = WEFT_OPTIONS_INIT(weft_runtime_opts);

		opts.name = "coroutines";
		runtime_ = weft_runtime_add(&opts, nullptr);
	}

	/* `here` is WEFT_HERE("name"). */
	void spawn(task started, std::uint32_t here)
	{
		task::handle handle = started.release();
		std::unique_lock<std::mutex> held(mutex_);

		handle.promise().home = this;
		handle.promise().id = ++last_id_;
		alive_++;
		weft_task_spawn(handle.promise().id, here);
		held.unlock();
		wake(handle);
	}

	/* Any thread. The task must be suspended, or about to be: see channel. */
	void wake(task::handle handle)
	{
		std::lock_guard<std::mutex> held(mutex_);

		weft_wake(handle.promise().id, WEFT_WORKER_NONE);
		ready_.push_back(handle);
		changed_.notify_one();
	}

	/* Returns when all tasks have ended. */
	void run(unsigned int n_threads)
	{
		std::vector<std::thread> threads;

		for (unsigned int i = 0; i < n_threads; i++)
			threads.emplace_back([this, i] { work(i); });
		for (std::thread &thread : threads)
			thread.join();
	}

      private:
	task::handle take(std::size_t &length)
	{
		std::unique_lock<std::mutex> held(mutex_);
		task::handle handle = nullptr;

		if (ready_.empty() && alive_) {
			weft_park(0);
			changed_.wait(held, [this] { return !ready_.empty() || !alive_; });
			weft_unpark(static_cast<std::uint32_t>(ready_.size()));
		}
		if (!ready_.empty()) {
			handle = ready_.front();
			ready_.pop_front();
		}
		length = ready_.size();
		return handle;
	}

	void resume(task::handle handle, std::size_t length)
	{
		std::uint64_t id = handle.promise().id;
		bool done;

		{
			std::unique_lock<std::mutex> alone(resuming(id));
			weft::poll poll(id, static_cast<std::uint32_t>(length));

			handle.resume();
			done = handle.done();
		}
		if (!done)
			return;
		weft_task_end(id);
		handle.destroy();
		std::lock_guard<std::mutex> held(mutex_);
		if (--alive_ == 0)
			changed_.notify_all();
	}

	/* Keeps a task that was woken just before it was suspended from being resumed twice at one time. */
	std::mutex &resuming(std::uint64_t id)
	{
		return resuming_[id % 16];
	}

	void work(unsigned int index)
	{
		weft::worker worker(runtime_, index);
		std::size_t length = 0;

		while (task::handle handle = take(length))
			resume(handle, length);
	}

	std::mutex mutex_, resuming_[16];
	std::condition_variable changed_;
	std::deque<task::handle> ready_;
	std::uint64_t last_id_ = 0;
	std::size_t alive_ = 0;
	std::uint32_t runtime_ = 0;
};

/* One waits, the others send. */
class channel
{
      public:
	void send(int value)
	{
		std::unique_lock<std::mutex> held(mutex_);
		task::handle woken = std::exchange(waiter_, nullptr);

		values_.push_back(value);
		held.unlock();
		if (woken)
			woken.promise().home->wake(woken);
	}

	struct awaiter {
		channel &from;

		bool await_ready()
		{
			std::lock_guard<std::mutex> held(from.mutex_);

			return !from.values_.empty();
		}
		bool await_suspend(task::handle handle)
		{
			std::lock_guard<std::mutex> held(from.mutex_);

			if (!from.values_.empty())
				return false;
			from.waiter_ = handle;
			return true;
		}
		int await_resume()
		{
			std::lock_guard<std::mutex> held(from.mutex_);
			int value = from.values_.front();

			from.values_.pop_front();
			return value;
		}
	};
	awaiter receive()
	{
		return {*this};
	}

      private:
	std::mutex mutex_;
	std::deque<int> values_;
	task::handle waiter_;
};

struct yield {
	bool await_ready()
	{
		return false;
	}
	void await_suspend(task::handle handle)
	{
		handle.promise().home->wake(handle);
	}
	void await_resume()
	{
	}
};

std::mutex table_lock;
long total;

void add(int value, std::chrono::milliseconds with_lock)
{
	static const std::uint32_t name = weft_string("table_lock");
	weft::lock<std::mutex> held(table_lock, name);

	total += value;
	std::this_thread::sleep_for(with_lock); /* the mistake */
}

task send_rows(channel &to, int rows)
{
	for (int row = 0; row < rows; row++) {
		to.send(row);
		co_await yield{};
	}
	to.send(-1);
}

task store_rows(channel &from)
{
	int row;

	while ((row = co_await from.receive()) >= 0)
		add(row, std::chrono::milliseconds(row == 20 ? 30 : 0));
}

task count_rows()
{
	for (int i = 0; i < 40; i++) {
		add(0, std::chrono::milliseconds(i == 5 ? 30 : 0));
		co_await yield{};
	}
}

int fail(const struct weft_error &err)
{
	std::fprintf(stderr, "coroutine: %s\n", err.msg);
	return 1;
}

} // namespace

int main(int argc, char **argv)
{
	struct weft_recorder_opts opts = WEFT_OPTIONS_INIT(weft_recorder_opts);
	struct weft_recorder *rec = nullptr;
	struct weft_error err;
	scheduler tasks;
	channel rows;

	opts.dir = argc > 1 ? argv[1] : "coroutine-trace";
	if (weft_recorder_open_env(&rec, &opts, &err) < 0 || weft_recorder_start(rec, &err) < 0)
		return fail(err);
	tasks.spawn(store_rows(rows), WEFT_HERE("store_rows"));
	tasks.spawn(send_rows(rows, 40), WEFT_HERE("send_rows"));
	tasks.spawn(count_rows(), WEFT_HERE("count_rows"));
	tasks.run(2);
	std::printf("%ld\n", total);
	return weft_recorder_close(rec, &err) < 0 ? fail(err) : 0;
}
