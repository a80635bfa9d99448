-- Returns the value of the lock, or ''.
return {redis.call('GET', LOCK) or ''}
