package conformance_test

import "reflect"

// flaws are what can be wrong with the lock in memory. Each is a fault that some
// lock in the world has had.
type flaws struct {
	// who is let in
	oneTooMany, nothingIsShared, lastComesFirst, smallOnesPass, nobodyIsWoken bool
	tryBarges, tryCountsWrong, tryNeverSucceeds, failedTryStays               bool
	// contexts
	entryIsUnchecked, contextIsIgnored, tieIsLeftToChance, contextBoundsTheHold bool
	waitersStay, neitherGrantNorError, cutOffIsDeaf                             bool
	// tokens
	tokensFall, tokensStay, tokensBeginAnew bool
	// losses
	lossIsIgnored, trustsTooLong, removalGoesUnseen, lossIsForever bool
	neverFailsOnLoss, alwaysFailsOnLoss, lostWaiterPasses          bool
	callbacksComeTwice, callbacksAreForgotten, callbacksBlock      bool
	releaseIsRevocation, closingKeeps, closingLeaves               bool
	waitsOutliveClosing, lateReleaseHitsOthers, releaseIsForgotten bool
	verifyIsBlind, verifySeesGhosts, noAnswerIsALoss               bool
	// options
	ownContextIsUnknown, notReentrant, maxHoldIsForgotten, noDelay, delayAlways bool
	keysDiffer, ownersAreLost, waitersSeemToHold, allSeemMine, listIsBackward   bool
}

// name returns the name of the one that is set.
func (f flaws) name() string {
	v := reflect.ValueOf(f)
	for field, value := range v.Fields() {
		if value.Bool() {
			return field.Name
		}
	}
	return "none"
}
